//! `kaido p4 table`: tables of running programs, by P4Runtime.

mod cells;
mod client;
mod digests;
mod entry;
mod value;

use std::process::ExitCode;

use anyhow::anyhow;
use output::p4::{DefaultAction, Done as Change, TableEntry, WrittenEntry};
use p4runtime::Pipeline;
use p4runtime::v1::{self, entity::Entity, update::Type};

use crate::cli::{P4Device, P4Entry, P4TableCommand, P4Writer};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::block_on;
use client::Client;

pub(super) use cells::{counter, meter};
pub(super) use digests::run as digest;

pub(super) fn run(command: P4TableCommand, output: &Output) -> Done {
    match command {
        P4TableCommand::Ls { device, table } => ls(&device, table.as_deref(), output),
        P4TableCommand::Add(entry) => write(&entry, Type::Insert, Change::Added, output),
        P4TableCommand::Modify(entry) => write(&entry, Type::Modify, Change::Modified, output),
        P4TableCommand::Delete(entry) => write(&entry, Type::Delete, Change::Deleted, output),
        P4TableCommand::Default { device, table, action } => {
            set_default(&device, &table, action.as_deref(), output)
        }
    }
}

fn usage(why: String) -> Failure {
    Failure::usage(anyhow!("{why}"))
}

fn ls(device: &P4Device, name: Option<&str>, output: &Output) -> Done {
    let (pipeline, entries, defaults) = block_on(async {
        let mut client = Client::connect(device).await?;
        let found = name.map(|name| entry::table(&client.pipeline, name)).transpose();
        let id = found.map_err(usage)?.map_or(0, |(id, _)| id);
        let entries = client.entries(id, false).await?;
        let defaults = client.entries(id, true).await?;
        Ok::<_, Failure>((client.pipeline, entries, defaults))
    })??;
    let said: Vec<TableEntry> = entries
        .iter()
        .chain(&defaults)
        .filter_map(|one| {
            let table = pipeline.tables.get(&one.table_id)?;
            Some(TableEntry {
                table: table.name.clone(),
                matches: entry::shown_key(table, one).into_iter().collect(),
                priority: Some(one.priority).filter(|priority| *priority != 0),
                action: entry::shown_action(&pipeline, one),
                default: one.is_default_action,
                constant: one.is_const,
            })
        })
        .collect();
    output.print(&said, |_| {
        let row = |one: &v1::TableEntry| {
            let of = pipeline.tables.get(&one.table_id)?;
            let key = entry::shown_which(of, one);
            let priority = match one.priority {
                0 => "-".to_owned(),
                priority => priority.to_string(),
            };
            let action = entry::shown_action(&pipeline, one);
            let action = if action.is_empty() { "(unknown)".to_owned() } else { action };
            Some(vec![of.name.clone(), priority, key, action])
        };
        let mut rows: Vec<Vec<String>> = entries.iter().chain(&defaults).filter_map(row).collect();
        // Default actions follow the entries of their table.
        rows.sort_by(|one, other| one[0].cmp(&other[0]));
        table(&["TABLE", "PRIORITY", "MATCH", "ACTION"], rows)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write(options: &P4Entry, kind: Type, done: Change, output: &Output) -> Done {
    let acts = kind != Type::Delete;
    let name = block_on(async {
        let mut client = Client::connect(&options.device.device).await?;
        let P4Entry { device, table, words, priority } = options;
        let one = entry::entry(&client.pipeline, table, words, *priority, acts).map_err(usage)?;
        let name = name_of(&client.pipeline, one.table_id);
        client.write(device, kind, Entity::TableEntry(one)).await?;
        Ok::<_, Failure>(name)
    })??;
    output.print(&WrittenEntry { table: name, done }, |written| {
        format!("{}: entry {}", written.table, done.name())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn name_of(pipeline: &Pipeline, id: u32) -> String {
    pipeline.tables.get(&id).map_or(String::new(), |table| table.name.clone())
}

fn set_default(device: &P4Writer, name: &str, action: Option<&str>, output: &Output) -> Done {
    let (name, shown) = block_on(async {
        let mut client = Client::connect(&device.device).await?;
        let one = default_entry(&client.pipeline, name, action).map_err(usage)?;
        let id = one.table_id;
        client.write(device, Type::Modify, Entity::TableEntry(one)).await?;
        let now = client.entries(id, true).await?;
        let shown = now.first().map(|now| entry::shown_action(&client.pipeline, now));
        Ok::<_, Failure>((name_of(&client.pipeline, id), shown.unwrap_or_default()))
    })??;
    let said = DefaultAction { table: name, done: Change::Set, action: shown };
    output.print(&said, |said| format!("{}: by default {}", said.table, said.action))?;
    Ok(ExitCode::SUCCESS)
}

fn default_entry(
    pipeline: &Pipeline,
    name: &str,
    action: Option<&str>,
) -> Result<v1::TableEntry, String> {
    let (table_id, table) = entry::table(pipeline, name)?;
    let action = action.map(|action| entry::action(pipeline, table, action)).transpose()?;
    Ok(v1::TableEntry { table_id, action, is_default_action: true, ..Default::default() })
}

/// Parses the updates of a file: a line has a table's name, fields with values, `priority=N` if the
/// table has priorities, and an action; or `default`, the name and an action. `#` begins a comment.
pub(in crate::commands) fn updates(
    pipeline: &Pipeline,
    text: &str,
) -> Result<Vec<v1::Update>, String> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<String> = words(line);
        if words.is_empty() {
            continue;
        }
        let is_default = words[0] == "default";
        let one = if is_default {
            match &words[1..] {
                [name, action] => default_entry(pipeline, name, Some(action)),
                _ => Err("expected a table and an action after `default`".to_owned()),
            }
        } else {
            entry::entry(pipeline, &words[0], &words[1..], None, true)
        };
        let one = one.map_err(|why| format!("line {number}: {why}"))?;
        let kind = if is_default { Type::Modify } else { Type::Insert };
        let entity = v1::Entity { entity: Some(v1::entity::Entity::TableEntry(one)) };
        all.push(v1::Update { r#type: kind.into(), entity: Some(entity) });
    }
    Ok(all)
}

/// Splits a line into words; blanks within parentheses do not separate words.
fn words(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_inside = false;
    for c in line.chars() {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        match all.last_mut() {
            Some(word) if !c.is_whitespace() || is_inside => word.push(c),
            _ => all.push(String::new()),
        }
    }
    all.retain(|word| !word.is_empty());
    all
}
