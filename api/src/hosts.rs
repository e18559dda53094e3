//! Who may be spoken to: requests must name this machine.
//!
//! The server listens on loopback, where every web page that a browser shows can reach it. A page
//! that points its own name at 127.0.0.1 (DNS rebinding) gives itself away by the `Host` header,
//! and one that sends requests across origins by the `Origin` header. A request whose address names
//! a host as well is held to both. Rebinding needs a name, so
//! names other than `localhost` are refused, and so are addresses that are not ours.

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use contracts::wire::problem::ProblemCode;

use crate::error::{Answer, ApiError};

/// The hosts by which this server may be called, with any port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hosts {
    /// Where the server listens.
    pub(crate) listen: IpAddr,
}

/// Passes on what is meant for us and refuses the rest.
pub(crate) async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

impl Hosts {
    fn check(self, request: &Request) -> Answer<()> {
        let all = |name| request.headers().get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
        let target = request.uri().authority().map(Authority::as_str);
        if all(header::HOST).count() > 1 {
            let detail = "the request has more than one Host header; send one";
            return Err(ApiError::new(ProblemCode::BadRequest, detail));
        }
        let mut hosts = all(header::HOST).chain(target).peekable();
        if hosts.peek().is_none() {
            return Err(ApiError::new(ProblemCode::BadRequest, "the request has no Host header"));
        }
        if let Some(host) = hosts.find(|host| !self.admits(host)) {
            return Err(refused("Host", host));
        }
        match all(header::ORIGIN).find(|origin| !self.admits_origin(origin)) {
            Some(origin) => Err(refused("Origin", origin)),
            None => Ok(()),
        }
    }

    fn admits_origin(self, origin: &str) -> bool {
        let uri = origin.parse::<Uri>().ok();
        let has_scheme = uri.as_ref().is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
        has_scheme
            && uri.as_ref().and_then(Uri::authority).is_some_and(|authority| self.admits(authority.as_str()))
    }

    fn admits(self, authority: &str) -> bool {
        let Ok(parsed) = authority.parse::<Authority>() else { return false };
        if authority.contains('@') {
            return false;
        }
        let host = parsed.host();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || literal.is_ok_and(|address| self.admits_address(address))
    }

    /// A server on all addresses of the machine cannot tell which of them are its own.
    fn admits_address(self, address: IpAddr) -> bool {
        address.is_loopback() || address == self.listen || self.listen.is_unspecified()
    }
}

fn refused(header: &str, value: &str) -> ApiError {
    let shown: String = value.chars().take(80).collect();
    let detail =
        format!("{header} {shown:?} is not this server; use localhost or the address that it listens on");
    ApiError::new(ProblemCode::Forbidden, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listen: &str, host: &str, expected: bool) {
        let hosts = Hosts { listen: listen.parse().unwrap() };
        assert_eq!(hosts.admits(host), expected, "listening on {listen}, called {host:?}");
    }

    #[test]
    fn only_loopback_and_the_listen_address_are_ours() {
        for host in ["localhost", "LOCALHOST:8700", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8700"] {
            check("127.0.0.1", host, true);
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.9",
            "",
            "a@localhost",
            "127.0.0.1@evil.example",
            "[::1",
            "?",
        ] {
            check("127.0.0.1", host, false);
        }
        check("10.0.0.9", "10.0.0.9:8700", true);
        check("10.0.0.9", "10.0.0.8:8700", false);
        check("0.0.0.0", "10.0.0.8:8700", true);
        check("0.0.0.0", "evil.example", false);
    }

    #[test]
    fn an_origin_is_a_scheme_and_one_of_our_hosts() {
        let hosts = Hosts { listen: "127.0.0.1".parse().unwrap() };
        for (origin, expected) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("null", false),
            ("localhost", false),
            ("http://evil.example", false),
            ("file://localhost", false),
        ] {
            assert_eq!(hosts.admits_origin(origin), expected, "{origin}");
        }
    }
}
