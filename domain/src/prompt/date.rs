//! What day it is.

use jiff::civil::Date;

/// The day, for a model that cannot know it. It joins the leading system message.
pub fn date_note(today: Date) -> String {
    let day = today.strftime("%Y-%m-%d, %A");
    format!("<system-reminder>\n<current_date>{day}</current_date>\n</system-reminder>")
}
