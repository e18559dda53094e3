//! Blobs over HTTP: whole, in part, and nobody else's.

use axum::{
    body::Body,
    http::{HeaderName, Method, Request, StatusCode, header},
};
use eventlog::{Append, BlobRef, BlobScope, EventLog, Expected, Options, OverMax, StreamId};
use serde_json::json;
use tempfile::TempDir;

use super::app::{App, request};
use crate::testing;

/// A server whose log is in a folder, with a blob on thread `t`.
struct Kept {
    app: App,
    blob: BlobRef,
    folder: TempDir,
}

/// Not text, and longer than a chunk.
fn bytes() -> Vec<u8> {
    (0..200_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 9) as u8).collect()
}

impl Kept {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = EventLog::open(folder.path(), Options::default()).unwrap();
        let app = App::on(log.clone());
        drop(app.server.projections.follow(std::future::pending()));
        for thread in ["t", "u"] {
            app.thread(thread).await;
        }
        let thread_id = testing::thread("t");
        let scope = BlobScope { thread_id: thread_id.clone(), run_id: None };
        let mut writer = log.write_blob(&scope, 0, OverMax::Refuse);
        writer.write(&bytes());
        let blob = writer.finish().blob.unwrap().unwrap();
        let mut naming = testing::event("llm.tool.result", "{}");
        naming.metadata = eventlog::Json::from_serialize(&json!({ "blobs": [blob] })).unwrap();
        let stream = StreamId::Thread(thread_id);
        let append = Append { stream, expected: Expected::Any, idempotency_key: None, events: vec![naming] };
        log.append(append).await.unwrap();
        Self { app, blob, folder }
    }

    fn path(&self) -> String {
        format!("/api/threads/t/blobs/{}", self.blob.sha256)
    }

    async fn get(&self, headers: &[(HeaderName, &str)]) -> (StatusCode, axum::http::HeaderMap, Vec<u8>) {
        let mut request: Request<Body> = request(Method::GET, &self.path(), None);
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let (parts, body) = self.app.open(request).await.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, body.to_vec())
    }
}

#[tokio::test]
async fn a_blob_is_sent_whole_and_safely() {
    let kept = Kept::new().await;
    let (status, headers, body) = kept.get(&[]).await;
    assert_eq!((status, body == bytes()), (StatusCode::OK, true));
    let sha256 = kept.blob.sha256;
    for (name, value) in [
        (header::CONTENT_LENGTH, "200000".to_owned()),
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{sha256}.bin\"")),
        (header::CACHE_CONTROL, "private, no-store, no-transform".to_owned()),
        (header::ETAG, format!("\"{sha256}\"")),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ] {
        assert_eq!(headers[&name], value, "{name}");
    }
    let head = kept.app.send(request(Method::HEAD, &kept.path(), None)).await;
    assert_eq!((head.status, head.header(header::CONTENT_LENGTH)), (StatusCode::OK, "200000"));
}

#[tokio::test]
async fn a_range_of_a_blob_is_sent_alone() {
    let kept = Kept::new().await;
    for (range, start, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=65530-65545", 65_530, 65_546),
        ("bytes=199999-", 199_999, 200_000),
        ("bytes=-100000", 100_000, 200_000),
    ] {
        let (status, headers, body) = kept.get(&[(header::RANGE, range)]).await;
        assert_eq!((status, body == bytes()[start..end]), (StatusCode::PARTIAL_CONTENT, true), "{range}");
        assert_eq!(headers[header::CONTENT_RANGE], format!("bytes {start}-{}/200000", end - 1));
        assert_eq!(headers[header::CONTENT_LENGTH], (end - start).to_string());
    }
    let (status, headers, body) = kept.get(&[(header::RANGE, "bytes=200000-")]).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(headers[header::CONTENT_RANGE], "bytes */200000");
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["code"], "range_not_satisfiable");
    // A download that is resumed gets the rest of the same bytes, or all of others.
    let etag = format!("\"{}\"", kept.blob.sha256);
    for (version, status) in [(etag.as_str(), StatusCode::PARTIAL_CONTENT), ("\"x\"", StatusCode::OK)] {
        let headers = [(header::RANGE, "bytes=100-"), (header::IF_RANGE, version)];
        assert_eq!(kept.get(&headers).await.0, status);
    }
    let (status, _, body) = kept.get(&[(header::IF_NONE_MATCH, &etag)]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
}

#[tokio::test]
async fn what_is_not_the_thread_s_is_not_found() {
    let kept = Kept::new().await;
    let sha256 = kept.blob.sha256;
    for path in [
        format!("/api/threads/u/blobs/{sha256}"),
        format!("/api/threads/unknown/blobs/{sha256}"),
        format!("/api/threads/t/blobs/{}", "ab".repeat(32)),
    ] {
        kept.app.get(&path).await.check_problem(404, "not_found", "not found");
    }
    for digest in ["ab", &sha256.to_string().to_uppercase(), "..%2F..%2Fkeys"] {
        let reply = kept.app.get(&format!("/api/threads/t/blobs/{digest}")).await;
        reply.check_problem(422, "invalid", "64 lowercase hexadecimal digits");
    }
    kept.app.get(&format!("{}?x=1", kept.path())).await.check_problem(422, "invalid", "x");
}

#[tokio::test]
async fn an_erased_thread_has_no_blobs() {
    let kept = Kept::new().await;
    let erased = kept.app.send(request(Method::DELETE, "/api/threads/t", None)).await;
    assert_eq!(erased.status, StatusCode::OK, "{erased:?}");
    kept.app.get(&kept.path()).await.check_problem(404, "not_found", "Thread t not found");
    let left = std::fs::read_dir(kept.folder.path().join("blobs")).unwrap().count();
    assert_eq!(left, 1, "only the folder of staged ones");
}

#[tokio::test]
async fn a_damaged_blob_is_told_and_never_sent_as_a_whole_one() {
    let kept = Kept::new().await;
    let mut path = kept.folder.path().join("blobs");
    while path.is_dir() {
        let mut entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        path = entries.find(|entry| !entry.ends_with("staged")).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    // In the second of four chunks: the answer has begun by then.
    let mut changed = whole.clone();
    changed[100_000] ^= 1;
    std::fs::write(&path, changed).unwrap();
    let response = kept.app.open(request(Method::GET, &kept.path(), None)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let error = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap_err();
    assert!(format!("{error:?}").contains("damaged"), "{error:?}");
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    kept.app.get(&kept.path()).await.check_problem(500, "integrity", "is damaged");
    std::fs::remove_file(&path).unwrap();
    kept.app.get(&kept.path()).await.check_problem(500, "integrity", "is missing, and an event of thread t");
    let unknown = kept.app.get(&format!("/api/threads/u/blobs/{}", kept.blob.sha256)).await;
    unknown.check_problem(404, "not_found", "not found");
}

#[tokio::test]
async fn blobs_are_counted() {
    let kept = Kept::new().await;
    let text = kept.app.get("/metrics").await.text;
    for line in
        ["remit_blobs_written_total 1", "remit_blob_bytes_written_total 200000", "remit_blobs_staged 0"]
    {
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
    }
}
