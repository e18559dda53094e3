//! Looking a type up: which source owns the name, and what the configuration lays over it
//! (facts §1.3 and §1.8).

use super::{
    BASH, CustomAgent, Definition, InConfigOrder, Override, SubagentsSettings, TokenBudget, builtin,
};
use crate::event::RefusalReason;

/// Where a definition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Part of Remit. Global limits apply to these only.
    BuiltIn,
    /// Written in the configuration.
    Configured,
    /// Kept in the registry, and enabled.
    Managed,
}

/// Every definition that there is.
#[derive(Debug, Clone)]
pub struct Registry {
    /// In order of precedence: the first source that has a name owns it.
    sources: Vec<(Origin, Vec<Definition>)>,
    settings: SubagentsSettings,
    summarization_enabled: bool,
}

/// What a delegation to a type obeys.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Where the definition comes from.
    pub origin: Origin,
    /// The definition, with the configuration's overrides laid over it.
    pub definition: Definition,
    /// Its token budget.
    pub token_budget: TokenBudget,
}

/// A type that a lead may delegate to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Listed<'a> {
    /// Where the definition comes from.
    pub origin: Origin,
    /// The definition, without overrides.
    pub definition: &'a Definition,
}

impl Registry {
    /// The built-in definitions and the configuration's. Whether history is compacted decides the
    /// default token budget.
    pub fn new(settings: SubagentsSettings, summarization_enabled: bool) -> Self {
        let configured = settings.custom_agents.iter().map(|(name, agent)| agent.definition(name)).collect();
        let sources = vec![(Origin::BuiltIn, builtin::definitions()), (Origin::Configured, configured)];
        Self { sources, settings, summarization_enabled }
    }

    /// The same, with the enabled definitions that administrators keep. They come last, so that one whose
    /// name another source has is hidden.
    #[must_use]
    pub fn with_managed(mut self, managed: Option<&InConfigOrder<CustomAgent>>) -> Self {
        self.sources.retain(|(origin, _)| *origin != Origin::Managed);
        let agents = managed.into_iter().flat_map(InConfigOrder::iter);
        let definitions = agents.map(|(name, agent)| agent.definition(name)).collect();
        self.sources.push((Origin::Managed, definitions));
        self
    }

    /// The source that hides a managed definition of this name; none where none does.
    pub fn hides(&self, name: &str) -> Option<Origin> {
        let (origin, _) = self.owned().find(|(_, definition)| definition.name.as_str() == name)?;
        (origin != Origin::Managed).then_some(origin)
    }

    /// What the configuration said, to be frozen into a run.
    pub const fn settings(&self) -> &SubagentsSettings {
        &self.settings
    }

    /// Whether history is compacted.
    pub const fn summarization_enabled(&self) -> bool {
        self.summarization_enabled
    }

    /// What a delegation to the type obeys, whoever may delegate to it. `None` for a name that no
    /// source has.
    pub fn resolve(&self, name: &str) -> Option<Resolved> {
        let (origin, definition) = self.owned().find(|(_, definition)| definition.name.as_str() == name)?;
        let mut definition = definition.clone();
        let agent = self.settings.agents.get(name);
        if origin == Origin::BuiltIn {
            definition.timeout_seconds = self.settings.timeout_seconds;
            definition.max_turns = self.settings.max_turns.unwrap_or(definition.max_turns);
        }
        if let Some(agent) = agent {
            lay_over(&mut definition, agent);
        }
        Some(Resolved { origin, definition, token_budget: self.token_budget(agent) })
    }

    /// The types that a lead may delegate to, in listing order: the built-in ones, then the
    /// configuration's in their order, then the managed ones by name. `allowed_subagents` of `None` allows all of them.
    pub fn available(&self, allow_bash: bool, allowed_subagents: Option<&[String]>) -> Vec<Listed<'_>> {
        self.owned()
            .filter(|(_, definition)| allow_bash || definition.name.as_str() != BASH)
            .filter(|(_, definition)| is_allowed(definition.name.as_str(), allowed_subagents))
            .map(|(origin, definition)| Listed { origin, definition })
            .collect()
    }

    /// What a delegation to the type obeys, if this lead may delegate to it.
    pub fn permit(
        &self,
        name: &str,
        allow_bash: bool,
        allowed_subagents: Option<&[String]>,
    ) -> Result<Resolved, RefusalReason> {
        let resolved = self.resolve(name).ok_or(RefusalReason::UnknownType)?;
        if !is_allowed(name, allowed_subagents) {
            return Err(RefusalReason::NotAllowed);
        }
        if name == BASH && !allow_bash {
            return Err(RefusalReason::BashDisabled);
        }
        Ok(resolved)
    }

    /// Every definition whose name no earlier source has.
    fn owned(&self) -> impl Iterator<Item = (Origin, &Definition)> {
        self.sources.iter().enumerate().flat_map(move |(place, (origin, definitions))| {
            let is_free = move |definition: &&Definition| !self.is_owned_before(place, definition);
            definitions.iter().filter(is_free).map(|definition| (*origin, definition))
        })
    }

    fn is_owned_before(&self, place: usize, definition: &Definition) -> bool {
        let earlier = self.sources.iter().take(place);
        earlier.flat_map(|(_, definitions)| definitions).any(|known| known.name == definition.name)
    }

    fn token_budget(&self, agent: Option<&Override>) -> TokenBudget {
        let written =
            agent.and_then(|agent| agent.token_budget.as_ref()).or(self.settings.token_budget.as_ref());
        match written {
            Some(budget) => budget.resolve(),
            None => TokenBudget::subagent_default(self.summarization_enabled),
        }
    }
}

fn is_allowed(name: &str, allowed_subagents: Option<&[String]>) -> bool {
    allowed_subagents.is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
}

fn lay_over(definition: &mut Definition, agent: &Override) {
    definition.timeout_seconds = agent.timeout_seconds.unwrap_or(definition.timeout_seconds);
    definition.max_turns = agent.max_turns.unwrap_or(definition.max_turns);
    if let Some(model) = &agent.model {
        definition.model = model.clone();
    }
    if let Some(skills) = &agent.skills {
        definition.skills = Some(skills.clone());
    }
}
