//! `remit agents`.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use contracts::wire::{managed::ManagedSubagent, subagent::Subagent};
use domain::ids::SubagentType;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    args::{AgentsArguments, AgentsOrder},
    context::Context,
    failure::{Exit, Failure},
    output::Output,
    render,
    source::agents::{Agents, Change},
};

/// The largest file that can hold a definition, in bytes: its texts several times over.
const DEFINITION_BYTES_MAX: u64 = 1024 * 1024;

/// What there is, for a program.
#[derive(Serialize)]
struct Listed<'a> {
    types: &'a [Subagent],
    managed: &'a [ManagedSubagent],
}

/// Lists, shows and changes types of subagent.
pub(super) async fn agents(context: &Context, arguments: AgentsArguments) -> anyhow::Result<Exit> {
    // A definition that cannot be read is refused before anything is opened.
    let order = prepared(arguments.order)?;
    let is_change = matches!(order, Order::Change { .. });
    let agents = Agents::open(context, is_change).await?;
    let outcome = perform(&context.output, &agents, order).await;
    agents.close_after(outcome).await
}

/// An order with everything that it needs.
enum Order {
    List,
    Show(SubagentType),
    History(SubagentType),
    Change { name: SubagentType, expected: Option<u64>, change: Change, done: &'static str },
}

fn prepared(order: AgentsOrder) -> anyhow::Result<Order> {
    let change = |name, expected, change, done| Order::Change { name, expected, change, done };
    Ok(match order {
        AgentsOrder::List => Order::List,
        AgentsOrder::Show(named) => Order::Show(named.name),
        AgentsOrder::History(named) => Order::History(named.name),
        AgentsOrder::Create(created) => {
            let enabled = !created.disabled;
            let written = created.written;
            let create = Change::Create { definition: definition(&written.file)?, enabled };
            change(written.changed.name, written.changed.expect, create, "created")
        }
        AgentsOrder::Update(written) => {
            let update = Change::Update(definition(&written.file)?);
            change(written.changed.name, written.changed.expect, update, "updated")
        }
        AgentsOrder::Enable(one) => change(one.name, one.expect, Change::Enable, "enabled"),
        AgentsOrder::Disable(one) => change(one.name, one.expect, Change::Disable, "disabled"),
        AgentsOrder::Delete(one) => change(one.name, one.expect, Change::Delete, "deleted"),
        AgentsOrder::Rollback(back) => {
            change(back.changed.name, back.changed.expect, Change::RollBack(back.to), "rolled back")
        }
    })
}

async fn perform(output: &Output, agents: &Agents, order: Order) -> anyhow::Result<Exit> {
    match order {
        Order::List => {
            let (types, managed) = (agents.types().await?, agents.managed().await?);
            if output.json {
                output.value(&Listed { types: &types, managed: &managed })?;
            } else {
                output.text(&render::agents::list(output.screen, &types, &managed))?;
            }
        }
        Order::Show(name) => show(output, agents, &name).await?,
        Order::History(name) => {
            let versions = agents.history(&name).await?;
            if versions.is_empty() {
                return Err(unknown(&name));
            }
            if output.json {
                output.value(&versions)?;
            } else {
                output.text(&render::agents::history(output.screen, &versions))?;
            }
        }
        Order::Change { name, expected, change, done } => {
            let changed = agents.change(&name, change, expected).await?;
            tell(output, &name, changed.as_ref(), done)?;
        }
    }
    Ok(Exit::Done)
}

/// What leads are offered goes before what nobody is.
async fn show(output: &Output, agents: &Agents, name: &SubagentType) -> anyhow::Result<()> {
    let managed = agents.managed().await?.into_iter().find(|one| one.name == name.as_str());
    let offered = agents.types().await?.into_iter().find(|one| one.name == name.as_str());
    match (offered, managed) {
        (None, None) => Err(unknown(name)),
        (offered, managed) if output.json => match (managed, offered) {
            (Some(managed), _) => output.value(&managed),
            (None, offered) => output.value(&offered),
        },
        (offered, managed) => {
            output.text(&render::agents::one(output.screen, offered.as_ref(), managed.as_ref()))
        }
    }
}

fn tell(
    output: &Output,
    name: &SubagentType,
    changed: Option<&ManagedSubagent>,
    done: &str,
) -> anyhow::Result<()> {
    if output.json {
        return output.value(&changed);
    }
    match changed {
        None => output.text(&format!("{done} {name}; its history stays")),
        Some(one) => {
            output.text(&format!("{done} {name}: version {}", one.version))?;
            if let Some(source) = one.hidden_by {
                let source = render::agents::source(source);
                output.warn(&format!("leads do not see it: a {source} type has the name {name}"));
            }
            Ok(())
        }
    }
}

fn unknown(name: &SubagentType) -> anyhow::Error {
    let failure = Failure::new(Exit::NotFound, format!("no type of subagent is called {name}"));
    failure.hint("`remit agents list` names those that there are").into()
}

/// Reads a definition: YAML, and so JSON as well.
fn definition(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let shown = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let text = text(path).map_err(|error| {
        anyhow::Error::new(error)
            .context(Failure::usage(format!("could not read the definition from {shown}")))
    })?;
    let value = runtime::config::parse_yaml(&text).map_err(|error| {
        anyhow::Error::new(error)
            .context(Failure::usage(format!("could not understand the definition in {shown}")))
    })?;
    match value {
        Value::Object(keys) => Ok(keys),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let refusal = Failure::usage(format!("{shown} holds no definition"));
            Err(refusal.hint("write keys and values: description, system_prompt, tools").into())
        }
    }
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let source: Box<dyn io::Read> =
        if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(fs::File::open(path)?) };
    let read = source.take(DEFINITION_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > DEFINITION_BYTES_MAX {
        return Err(io::Error::other(format!("it is larger than {DEFINITION_BYTES_MAX} bytes")));
    }
    Ok(text)
}
