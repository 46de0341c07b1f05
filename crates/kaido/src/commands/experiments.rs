//! `kaido demo` and `kaido bench`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bench::demo::Outcome;
use bench::{Context, Kind, Row, Scale, emulator, xsk};
use indicatif::{ProgressBar, ProgressStyle};
use lab::{Cancel, Labs};
use model::topology::Dataplane;
use output::bench::{DemoLine, DemoOutcome};

use super::progress::program;
use crate::cli::{BenchName, BenchOptions, BenchPart, DataplaneName, DemoOptions};
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

/// Parts of the emulator benchmark, by their names in `--only`.
const OF_EMULATOR: [(BenchPart, emulator::Part); 6] = [
    (BenchPart::Streams, emulator::Part::Streams),
    (BenchPart::Packets, emulator::Part::Packets),
    (BenchPart::Exact, emulator::Part::Exact),
    (BenchPart::Cross, emulator::Part::Cross),
    (BenchPart::Late, emulator::Part::Late),
    (BenchPart::Reroute, emulator::Part::Reroute),
];

/// Parts of the benchmark of AF_XDP clients, likewise.
const OF_XSK: [(BenchPart, xsk::Part); 3] = [
    (BenchPart::Rounds, xsk::Part::Rounds),
    (BenchPart::Delays, xsk::Part::Delays),
    (BenchPart::Steady, xsk::Part::Steady),
];

/// Returns the selected parts of a benchmark; all if none is named.
fn parts<P: Copy>(only: &[BenchPart], all: &[(BenchPart, P)]) -> Vec<P> {
    let is_selected = |name: &BenchPart| only.is_empty() || only.contains(name);
    all.iter().filter(|(name, _)| is_selected(name)).map(|(_, part)| *part).collect()
}

/// Rejects `--only` with parts of another benchmark.
fn check_parts(options: &BenchOptions) -> Result<(), Failure> {
    let is_known = |part: &BenchPart| match options.name {
        Some(BenchName::Emulator) => OF_EMULATOR.iter().any(|(name, _)| name == part),
        Some(BenchName::Xsk) => OF_XSK.iter().any(|(name, _)| name == part),
        _ => false,
    };
    if !options.only.iter().all(is_known) {
        let why =
            "`--only` names parts of `kaido bench emulator` or `xsk`: see `kaido bench --help`";
        return Err(Failure::usage(anyhow::anyhow!(why)));
    }
    for (part, name) in [(BenchPart::Reroute, "reroute"), (BenchPart::Steady, "steady")] {
        if options.quick && options.only.contains(&part) {
            let why = anyhow::anyhow!("`{name}` takes minutes: not with `--quick`");
            return Err(Failure::usage(why));
        }
    }
    Ok(())
}

pub(crate) fn bench(options: BenchOptions, output: &Output) -> Done {
    check_parts(&options)?;
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
            let parts = parts(&options.only, &OF_EMULATOR);
            rows.extend(emulator::bench(context, options.quick, &parts)?);
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
            let parts = parts(&options.only, &OF_XSK);
            rows.extend(xsk::bench(context, &options.openvswitch, options.quick, &parts)?);
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
