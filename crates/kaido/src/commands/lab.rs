//! `kaido lab`.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use lab::{Cancel, Labs, Options, Phase};
use output::lab::{
    CheckedTopology, CollectedLab, Drawing, LabDown, LabPhase, LabSummary, LabUp, Run,
    StartedDaemon,
};

use super::progress::{program, progress_bar, shows};
use super::topology_file::{TopologyFile, read_all, read_topology};
use crate::cli::LabCommand;
use crate::failure::{Done, Failure};
use crate::output::{Output, counted, table};
use crate::runtime::cancellable;

pub(crate) fn run(command: LabCommand, output: &Output) -> Done {
    let labs = Labs::of_environment()?;
    // Commands in a node have the descriptors of their caller, daemons do not.
    if !matches!(command, LabCommand::Exec { .. } | LabCommand::Shell { .. }) {
        confine::close_inherited_on_exec().map_err(Failure::failed)?;
    }
    match command {
        LabCommand::Check { file } => check(&file, output),
        LabCommand::Up { file, name, limit, yes } => {
            let limit = Duration::from_secs(limit);
            let program = Some(program()?);
            let options =
                Options { name, program, limit, attach_only_way_out: yes, ..Options::default() };
            up(&labs, &file, options, output)
        }
        LabCommand::Down { name } => {
            let started = Instant::now();
            let name = one_to_end(&labs, name)?;
            let down = labs.down(&name);
            sandbox::process::remove_stale_groups();
            down?;
            let seconds = started.elapsed().as_secs_f64();
            output.print(&LabDown { lab: name, seconds }, |down| {
                format!("lab {} is down after {seconds:.1} s", down.lab)
            })?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Ls => ls(&labs, output),
        LabCommand::Test { what, junit, limit } => {
            let limit = Duration::from_secs(limit);
            super::test::run(&labs, what.as_deref(), junit.as_deref(), limit, output)
        }
        LabCommand::Exec { which, node, command } => {
            let lab = labs.choose(which.lab.as_deref())?;
            lab.enter(&node)?;
            let mut process = Command::new(&command[0]);
            process.args(&command[1..]).envs(lab.environment(&node)?);
            Err(become_command(process))
        }
        LabCommand::Shell { which, node } => {
            let lab = labs.choose(which.lab.as_deref())?;
            lab.enter(&node)?;
            let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
            let mut process = Command::new(shell);
            process.env("KAIDO_LAB", lab.name()).env("KAIDO_NODE", &node);
            process.envs(lab.environment(&node)?);
            Err(become_command(process))
        }
        // The name of a lab is also accepted without --lab.
        LabCommand::Graph { which, svg, file } => {
            graph(&labs, file.or(which.lab).as_deref(), svg, output)
        }
        LabCommand::Import { file, out, from } => {
            super::import::run(&file, out.as_deref(), from, output)
        }
        LabCommand::Link { which, link, change } => {
            super::link::change(&labs.choose(which.lab.as_deref())?, &link, change, output)
        }
        LabCommand::Links { which } => {
            super::links::list(&labs.choose(which.lab.as_deref())?, output)
        }
        LabCommand::Top { which, interval, once } => {
            let lab = labs.choose(which.lab.as_deref())?;
            super::top::run(&lab, Duration::from_secs_f64(interval), once, output)
        }
        LabCommand::Metrics { which, listen } => {
            super::metrics::run(&labs, which.lab.as_deref(), listen, output)
        }
        LabCommand::Traffic { which, link, from, stop: true, .. } => {
            super::link::stop_traffic(&labs.choose(which.lab.as_deref())?, &link, from, output)
        }
        LabCommand::Traffic { which, link, from, settings, .. } => {
            let lab = labs.choose(which.lab.as_deref())?;
            super::link::traffic(&lab, &link, from, &settings, output)
        }
        LabCommand::Events { which } => {
            super::events::list(&labs.choose(which.lab.as_deref())?, output)
        }
        LabCommand::Capture { which, link: Some(link), from, write, count, seconds, .. } => {
            let lab = labs.choose(which.lab.as_deref())?;
            // clap requires it with --link.
            let file = write.unwrap_or_default();
            let ends = super::capture::Ends { count, after: seconds.map(Duration::from_secs) };
            super::capture::run(&lab, &link, from, &file, ends, output)
        }
        LabCommand::Capture { which, place, arguments, .. } => {
            let place = place.unwrap_or_default();
            let Some((node, interface)) = place.split_once(':') else {
                return Err(Failure::usage(anyhow!(
                    "`{place}` names no interface: write NODE:INTERFACE, such as r1:r2"
                )));
            };
            let lab = labs.choose(which.lab.as_deref())?;
            let mut process = lab.capture_command(node, interface)?;
            process.args(arguments);
            lab.enter(node)?;
            Err(become_command(process))
        }
        LabCommand::Replay { file, capture } => super::replay::run(&file, &capture, output),
        LabCommand::Start { which, daemon } => {
            let lab = labs.choose(which.lab.as_deref())?;
            let program = program()?;
            match daemon.as_str() {
                "controller" => lab.start_controller(&program)?,
                "emulator" => lab.start_emulator(&program)?,
                "supervisor" => lab.start_supervisor(&program)?,
                node => lab.start_node(node, &program)?,
            }
            // Daemons that are still missing.
            let started = StartedDaemon { started: daemon, troubles: lab.troubles() };
            output.print(&started, |StartedDaemon { started, troubles }| {
                let started = format!("{started} is started");
                std::iter::once(started).chain(troubles.clone()).collect::<Vec<_>>().join("\n")
            })?;
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Gc => {
            let found = labs.gc();
            sandbox::process::remove_stale_groups();
            let collected: Vec<_> = found?.into_iter().map(collected).collect();
            output.print(&collected, |collected| {
                if collected.is_empty() {
                    return "nothing was left behind".into();
                }
                let line = |one: &CollectedLab| match (&one.error, one.removed) {
                    (Some(_), _) => format!("{} cannot be removed", one.name),
                    (None, true) => format!("{} removed", one.name),
                    (None, false) => format!("{} is running, left alone", one.name),
                };
                collected.iter().map(line).collect::<Vec<_>>().join("\n")
            })?;
            let why = |one: &CollectedLab| Some(format!("{}: {}", one.name, one.error.as_ref()?));
            match collected.iter().filter_map(why).collect::<Vec<_>>().join("\n") {
                none if none.is_empty() => Ok(ExitCode::SUCCESS),
                errors => Err(Failure::failed(anyhow!(errors))),
            }
        }
    }
}

fn collected(one: lab::Collected) -> CollectedLab {
    let lab::Collected { name, removed, error } = one;
    CollectedLab { name, removed, error }
}

fn run_of(one: lab::Run) -> Run {
    let lab::Run { node, user, by, text } = one;
    Run { node, user, by, text }
}

fn check(file: &Path, output: &Output) -> Done {
    let topology = read_all(file, output)?.topology;
    let runs = lab::runs(&topology).into_iter().map(run_of).collect();
    output.print(&CheckedTopology { topology: &topology, runs }, |checked| {
        let tests = match topology.tests.len() {
            0 => String::new(),
            n => format!(", {}", counted(n, "test")),
        };
        let nodes = counted(topology.nodes.len(), "node");
        let links = match topology.segments.len() {
            1 => "1 link or LAN".into(),
            n => format!("{n} links and LANs"),
        };
        let applications = counted(topology.applications.len(), "application");
        let (file, name) = (file.display(), &topology.name);
        let mut text =
            format!("{file}: no errors, lab {name}, {nodes}, {links}, {applications}{tests}");
        for run in &checked.runs {
            text.push_str(&format!("\n{}", run_in_words(run)));
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Formats a command that a lab runs. Each line is shown, since a harmless first line could hide others.
fn run_in_words(run: &Run) -> String {
    let preposition = if run.user == lab::SANDBOX { "in" } else { "as" };
    let head = format!("runs {preposition} {} on {}:", run.user, run.node);
    let by = run.by.map_or_else(String::new, |by| format!(" {by}:"));
    match run.text.trim().lines().map(visible).collect::<Vec<_>>()[..] {
        [ref one] => format!("{head}{by} {one}"),
        ref lines => lines.iter().fold(head + &by, |text, line| text + "\n  | " + line),
    }
}

/// Writes out the characters that a terminal would not show as such, colors included: they could hide the rest of
/// a list of commands.
fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control() && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let written = |c: char| if is_hidden(c) { c.escape_unicode().to_string() } else { c.into() };
    text.chars().map(written).collect()
}

fn up(labs: &Labs, file: &Path, options: Options, output: &Output) -> Done {
    let TopologyFile { text, topology, recordings, path } = read_all(file, output)?;
    let options = Options { files: recordings.into_texts(), ..options };
    let started = Instant::now();
    let cancel = Cancel::default();
    let bar = progress_bar(output);
    let mut progress = shows(&bar);
    let brought_up =
        cancellable(&cancel, || labs.up(topology, &text, &path, &options, &cancel, &mut progress))?;
    bar.finish_and_clear();
    let lab = brought_up?;
    let seconds = started.elapsed().as_secs_f64();
    let nodes = lab.topology().nodes.len();
    output.print(&LabUp { lab: lab.name().into(), nodes, seconds }, |up| {
        format!("lab {} is ready: {}, {seconds:.1} s", up.lab, counted(nodes, "node"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the lab with this name, or the lab created from this topology file, which may no longer
/// exist.
fn one_to_end(labs: &Labs, what: String) -> Result<String, Failure> {
    let all = labs.names()?;
    if all.contains(&what) {
        return Ok(what);
    }
    let file = match std::fs::canonicalize(&what) {
        Ok(file) if file.is_file() => file,
        Err(error) if error.kind() == ErrorKind::NotFound && !model::is_lab_name(&what) => {
            std::path::absolute(&what).unwrap_or_default()
        }
        _ => return Ok(what),
    };
    let of_file = labs.list()?.into_iter().filter(|lab| lab.file == file);
    let said = match of_file.map(|lab| lab.name).collect::<Vec<_>>().as_slice() {
        [one] => return Ok(one.clone()),
        [] if !file.exists() => match all.join(", ") {
            none if none.is_empty() => format!("no file {what}, and no lab"),
            all => format!("no file {what}: name one of: {all}"),
        },
        [] if all.is_empty() => "no lab".into(),
        [] => format!("no lab was started from {what}: name one of: {}", all.join(", ")),
        many => format!("{what} has several labs: name one of: {}", many.join(", ")),
    };
    Err(Failure::usage(anyhow!(said)))
}

fn phase(phase: Phase) -> LabPhase {
    match phase {
        Phase::Starting => LabPhase::Starting,
        Phase::Ready => LabPhase::Ready,
        Phase::Degraded => LabPhase::Degraded,
        Phase::Stopping => LabPhase::Stopping,
        Phase::Broken => LabPhase::Broken,
    }
}

fn summary(lab: &lab::Summary) -> LabSummary {
    LabSummary {
        name: lab.name.clone(),
        phase: phase(lab.phase),
        file: lab.file.to_string_lossy().into_owned(),
        nodes: lab.nodes,
        xdp: lab.xdp,
        started: lab.started,
        troubles: lab.troubles.clone(),
    }
}

fn ls(labs: &Labs, output: &Output) -> Done {
    let list = labs.list()?;
    output.print(&list.iter().map(summary).collect::<Vec<_>>(), |_| {
        if list.is_empty() {
            return "no labs".into();
        }
        let row = |lab: &lab::Summary| {
            let file = lab.file.display().to_string();
            let (nodes, xdp) = (lab.nodes.to_string(), lab.xdp.to_string());
            vec![lab.name.clone(), lab.phase.word().into(), nodes, xdp, file]
        };
        let mut text = table(&["LAB", "STATE", "NODES", "XDP", "FILE"], list.iter().map(row));
        for lab in &list {
            for trouble in &lab.troubles {
                text.push_str(&format!("\n{}: {trouble}", lab.name));
            }
        }
        text
    })?;
    Ok(ExitCode::SUCCESS)
}

fn graph(labs: &Labs, what: Option<&str>, svg: bool, output: &Output) -> Done {
    let topology = match what {
        Some(file) if Path::new(file).is_file() => read_topology(Path::new(file), output)?.1,
        what => labs.choose(what)?.topology().clone(),
    };
    if svg {
        output.print(&Drawing { svg: drawing::svg(&topology) }, |drawing| drawing.svg.clone())?;
    } else {
        output.print(&topology, drawing::text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn become_command(mut process: Command) -> Failure {
    let program = process.get_program().to_string_lossy().into_owned();
    let error = process.exec();
    // The exit codes of shells.
    let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
    Failure::with_code(anyhow::Error::new(error).context(format!("cannot run {program}")), code)
}
