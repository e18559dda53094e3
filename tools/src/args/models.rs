//! `remit models`.

use clap::{Args, Subcommand};

/// `remit models`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  remit models\n  remit models check local\n\n`check` sends two tiny requests. It ends \
                        with 0 when the model can be used, 4 when the provider refuses the key or the account, and 1 \
                        when it cannot be used for another reason."
)]
pub(crate) struct ModelsArguments {
    /// What to do; without it the models are listed.
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Try a model: whether it answers, streams, reports tokens and calls tools
    Check {
        /// The model, by its name in the configuration
        #[arg(value_name = "NAME")]
        name: String,
    },
}
