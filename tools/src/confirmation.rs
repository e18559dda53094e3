//! Asking before something that cannot be undone.

use std::io::{self, BufRead, IsTerminal as _};

use anyhow::Context as _;

use crate::{
    failure::{Exit, Failure},
    output::Output,
};

/// What is asked before something is done.
pub(crate) struct Question<'a> {
    /// What will happen, and the question itself.
    pub(crate) text: &'a str,
    /// What is said when the answer is no, such as `nothing was erased`.
    pub(crate) refusal: &'static str,
}

impl Question<'_> {
    /// Goes on only if somebody says so: with `--yes`, or on the terminal. Everything else, and that
    /// nobody is there to be asked, is a no, with one exit code.
    pub(crate) fn confirm(&self, output: &Output, yes: bool) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !output.messages.is_terminal {
            let refusal = format!("{}: nobody is there to be asked", self.refusal);
            return Err(Failure::new(Exit::Refused, refusal).hint("add --yes if it is meant").into());
        }
        output.message(&format!("{} [y/N]", self.text));
        self.read_answer(&mut io::stdin().lock())
    }

    fn read_answer(&self, input: &mut impl BufRead) -> anyhow::Result<()> {
        let mut answer = String::new();
        input.read_line(&mut answer).context("could not read the answer")?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Refused, self.refusal).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::exit_of;

    const QUESTION: Question<'static> = Question { text: "Erase it?", refusal: "nothing was erased" };

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, is_yes) in [
            ("y\n", true),
            (" YES \n", true),
            ("yes", true),
            ("\n", false),
            ("", false),
            ("n\n", false),
            ("yesterday\n", false),
        ] {
            let said = QUESTION.read_answer(&mut answer.as_bytes());
            assert_eq!(said.is_ok(), is_yes, "{answer:?}");
            if let Err(error) = said {
                assert_eq!(
                    (exit_of(&error), error.to_string().as_str()),
                    (Exit::Refused, "nothing was erased")
                );
            }
        }
    }

    #[test]
    fn nobody_to_ask_is_a_no() {
        let mut output = Output::new(false);
        QUESTION.confirm(&output, true).unwrap();
        output.messages.is_terminal = false;
        let error = QUESTION.confirm(&output, false).unwrap_err();
        assert_eq!(exit_of(&error), Exit::Refused);
    }
}
