//! `kaido demo` and `kaido bench`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bench::demo::Outcome;
use bench::emulator::Part;
use bench::{Context, Kind, Row, Scale};
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Cancel, Labs};
use model::topology::Dataplane;
use output::bench::{DemoLine, DemoOutcome};

use super::progress::program;
use crate::cli::{BenchName, BenchOptions, DataplaneName, DemoOptions, EmulatorPart};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::cancellable;
use crate::target::{Target, own_directory};

pub(crate) fn demo(options: DemoOptions, output: &Output) -> Done {
    let scale = if options.full { Scale::Full } else { Scale::Tenth };
    let dataplane = match options.dataplane {
        DataplaneName::Kernel => Dataplane::Kernel,
        DataplaneName::Xdp => Dataplane::Xdp,
    };
    let kind = Kind { scale, dataplane };
    let directory = own_directory(&options.out)
        .with_context(|| format!("cannot write into {}", options.out.display()))
        .map_err(Failure::failed)?;
    let bar = bar(output);
    let outcome = with_context(output, &bar, |context| {
        let mut progress = |done: usize, total: usize, what: &str| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            tell(output, &bar, &format!("{}/{total} {what}", (done + 1).min(total)));
        };
        bench::demo::run_demo(context, kind, options.seconds, &directory.path(), &mut progress)
    })?;
    let report = options.out.join(Path::new(&outcome.report).file_name().unwrap_or_default());
    let outcome = demo_output(Outcome { report: report.display().to_string(), ..outcome });
    output.print(&outcome, demo_text)?;
    Ok(if outcome.holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn demo_output(outcome: Outcome) -> DemoOutcome {
    let Outcome { lines, differences, report, holds } = outcome;
    let lines = lines.into_iter().map(|line| DemoLine {
        what: line.what,
        published: line.published,
        without: line.without,
        with: line.with,
    });
    DemoOutcome { lines: lines.collect(), differences, report, holds }
}

fn demo_text(outcome: &DemoOutcome) -> String {
    let rows = outcome.lines.iter().map(|line| {
        [&line.what, &line.published, &line.without, &line.with].map(Clone::clone).to_vec()
    });
    let mut text = table(&["WHAT", "PUBLISHED", "WITHOUT KAIDO", "WITH KAIDO"], rows);
    text.push_str("\n\nWhere this differs from what was published:\n");
    for difference in &outcome.differences {
        text.push_str(&format!("- {difference}\n"));
    }
    let verdict = if outcome.holds {
        "The application moved under full load, once, and stayed under half."
    } else {
        "NOT AS IT SHOULD BE: the application must move once under full load, and stay under half."
    };
    text + &format!("\n{verdict}\nThe report: {}", outcome.report)
}

/// Returns the selected parts of the emulator benchmark; all if none is named.
fn parts(options: &BenchOptions) -> Result<Vec<Part>, Failure> {
    if options.only.is_empty() {
        return Ok(Part::ALL.to_vec());
    }
    if options.name != Some(BenchName::Emulator) {
        return Err(Failure::usage(anyhow::anyhow!(
            "`--only` names parts of `kaido bench emulator`"
        )));
    }
    if options.quick && options.only.contains(&EmulatorPart::Reroute) {
        return Err(Failure::usage(anyhow::anyhow!("`reroute` takes minutes: not with `--quick`")));
    }
    let part = |part: &EmulatorPart| match part {
        EmulatorPart::Streams => Part::Streams,
        EmulatorPart::Packets => Part::Packets,
        EmulatorPart::Exact => Part::Exact,
        EmulatorPart::Cross => Part::Cross,
        EmulatorPart::Late => Part::Late,
        EmulatorPart::Reroute => Part::Reroute,
    };
    Ok(options.only.iter().map(part).collect())
}

pub(crate) fn bench(options: BenchOptions, output: &Output) -> Done {
    let parts = parts(&options)?;
    let only = [("--figure", options.figure.is_some()), ("--live", options.live)];
    for (option, _) in only.into_iter().filter(|(_, given)| *given) {
        if options.name != Some(BenchName::VmFilter) {
            let why = anyhow::anyhow!("`{option}` is for `kaido bench vm-filter`");
            return Err(Failure::usage(why));
        }
    }
    let figure = options.figure.as_deref().map(|file| {
        Target::resolve(file).with_context(|| format!("cannot write {}", file.display()))
    });
    let figure = figure.transpose().map_err(Failure::failed)?;
    let bar = bar(output);
    let rows = with_context(output, &bar, |context| {
        let mut rows = Vec::new();
        if matches!(options.name, Some(BenchName::Lab) | None) {
            rows.extend(bench::lab_up::bench(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::Path) | None) {
            rows.extend(bench::path::bench(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::Scale) | None) {
            rows.extend(bench::dataplane::scale(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::Function) | None) {
            rows.extend(bench::dataplane::function(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::Emulator) | None) {
            rows.extend(bench::emulator::bench(context, options.quick, &parts)?);
        }
        if matches!(options.name, Some(BenchName::Dataplane) | None) {
            rows.extend(bench::dataplane::bench(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::P4) | None) {
            rows.extend(bench::programs::bench(context, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::VmFilter)) {
            let run = if options.live { bench::vm_filter::live } else { bench::vm_filter::run };
            let (found, svg) = run(context)?;
            if let Some(target) = figure {
                target.write(svg.as_bytes()).context("the figure cannot be written")?;
            }
            rows.extend(found);
        }
        if matches!(options.name, Some(BenchName::Xsk)) {
            rows.extend(bench::xsk::bench(context, &options.openvswitch, options.quick)?);
        }
        if matches!(options.name, Some(BenchName::Instructions)) {
            rows.extend(bench::dataplane::instructions(context)?);
        }
        Ok(rows)
    })?;
    output.print(&rows, |rows| {
        let figure = |value: f64| format!("{value:.4}");
        let optional = |value: Option<f64>| value.map_or("-".into(), figure);
        let row = |row: &Row| {
            vec![
                row.name.clone(),
                figure(row.value),
                row.unit.into(),
                format!("{} .. {}", figure(row.low), figure(row.high)),
                optional(row.baseline),
                optional(row.ratio),
            ]
        };
        table(&["NAME", "MEDIAN", "UNIT", "LOW .. HIGH", "BASELINE", "RATIO"], rows.iter().map(row))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs an experiment that stops and cleans up when the process is asked to end.
fn with_context<T: Send>(
    output: &Output,
    bar: &ProgressBar,
    work: impl FnOnce(&Context<'_>) -> anyhow::Result<T> + Send,
) -> Result<T, Failure> {
    let cancel = Cancel::default();
    let (program, labs) = (program()?, Labs::of_environment()?);
    let done = cancellable(&cancel, || {
        let say = |what: &str| tell(output, bar, what);
        let cancel = cancel.clone();
        work(&Context { program, labs, cancel, say: &say })
    })?;
    bar.finish_and_clear();
    done.map_err(|error| match error.downcast::<lab::Error>() {
        Ok(error) => error.into(),
        Err(error) => Failure::failed(error),
    })
}

/// Reports progress: on the bar if stderr is a terminal, otherwise as lines for a log.
fn tell(output: &Output, bar: &ProgressBar, what: &str) {
    if output.is_watched() {
        bar.set_message(what.to_owned());
    } else if !output.is_json() {
        // Ignore a closed reader: it must not fail the experiment.
        let _ = writeln!(std::io::stderr(), "{what}");
    }
}

fn bar(output: &Output) -> ProgressBar {
    if !output.is_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{elapsed:>4} {spinner} {wide_msg}")
        .expect("the template is well-formed");
    let bar = ProgressBar::new(0).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
