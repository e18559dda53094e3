//! Telling a person that the log is brought to the present format: any command that opens it may have
//! to do that first, and it takes as long as the log is large.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use eventlog::{OnMigrating, Progress};

use crate::{output::Output, render::units, screen::Screen, work_bar::WorkBar};

/// Between two lines where no bar can be shown, such as in the journal of a server.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// What was told of a migration.
struct Told {
    output: Output,
    folder: PathBuf,
    bar: WorkBar,
    last_line: Instant,
}

/// Tells on standard error what is done to the log in a folder, and how far it is.
pub(crate) fn told(folder: PathBuf) -> OnMigrating {
    let begun = Mutex::new(None);
    Arc::new(move |progress| {
        // Between two statements that could panic the words are whole.
        let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        let told = begun.get_or_insert_with(|| Told::begin(folder.clone(), progress));
        told.go_on(progress);
        if progress.position == progress.head {
            *begun = None;
        }
    })
}

impl Told {
    fn begin(folder: PathBuf, progress: Progress) -> Self {
        let output = Output { json: false, screen: Screen::stdout(), messages: Screen::stderr() };
        let events = units::counted(progress.head.get(), "event", "events");
        output.note(&format!(
            "bringing the log in {} to the present format: {events} are copied and proven; the old log stays until \
             the new one is whole",
            folder.display()
        ));
        let bar = WorkBar::new("migrating", output.messages);
        Self { output, folder, bar, last_line: Instant::now() }
    }

    fn go_on(&mut self, progress: Progress) {
        self.bar.show(progress);
        if progress.position == progress.head {
            let folder = self.folder.display();
            self.output
                .note(&format!("the log in {folder} is copied; it is proven and put in its place now"));
        } else if !self.output.messages.is_terminal && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let (done, all) = (progress.position, progress.head);
            self.output.note(&format!("copied {done} of {all} events"));
        }
    }
}
