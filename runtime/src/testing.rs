//! What tests of the runtime share: a scripted model, tools and a log that misbehave when they are
//! told to, and a runtime around them.

pub(crate) mod diligent;
pub(crate) mod gate;
pub(crate) mod pauses;
pub(crate) mod script;
pub(crate) mod slow_reads;
pub(crate) mod time;
pub(crate) mod tools;
pub(crate) mod world;

pub(crate) use self::{
    script::{Script, Turn, asking, calling, delegating, saying, task},
    world::{Setup, World, facts_of},
};
