//! Measures the log on the disk at hand and prints JSON.
//!
//! ```text
//! measure append WRITERS BATCH SECONDS [EVENT_BYTES]
//! measure read EVENTS
//! measure replay EVENTS
//! ```

use std::{error::Error, time::Duration};

use eventlog::bench::{self, AppendLoad};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| -> Result<u64, Box<dyn Error>> {
        Ok(words.get(at).ok_or("too few words: see the example's first lines")?.parse()?)
    };
    let folder = std::env::temp_dir().join(format!("remit-measure-{}", std::process::id()));
    let report = match words.first().map(String::as_str) {
        Some("append") => {
            let load = AppendLoad {
                writers: number(1)?.try_into()?,
                batch: number(2)?.try_into()?,
                time: Duration::from_secs(number(3)?),
                event_bytes: if words.len() > 4 { number(4)?.try_into()? } else { 1_024 },
            };
            serde_json::to_string_pretty(&bench::append(&folder, load)?)?
        }
        Some("read") => serde_json::to_string_pretty(&bench::read(&folder, number(1)?)?)?,
        Some("replay") => serde_json::to_string_pretty(&bench::replay(&folder, number(1)?)?)?,
        _ => return Err("say append, read or replay".into()),
    };
    println!("{report}");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
