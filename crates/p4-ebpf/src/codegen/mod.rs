//! Generates eBPF (RFC 9669) from the flat form.

mod emit;
mod liveness;
mod moves;
mod opcodes;
mod prepare;
mod registers;
#[cfg(test)]
mod tests;

use p4::interpret;
use p4::ir::{Elaborated, NotElaborated, Program};
use p4_object::{ENTRY, Library, LineRow, Lines, MAX_INSTRUCTIONS, Object};
use p4_syntax::diagnostic::{Diagnostic, Diagnostics};
use p4_syntax::source::{Sources, Span};

use crate::flat::{self, NotCompiled, Paths};
use crate::layout::Maps;

/// Size of the stack in 8-byte words.
const STACK_WORDS: u32 = 64;

/// Upper limit on the instructions of a program in which the code after the parser is duplicated.
const MAX_SPLIT: usize = 12_288;

/// A compiled program.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Code and maps.
    pub object: Object,
    /// Layout of the tables in the maps.
    pub maps: Maps,
}

/// Compiles a program.
///
/// # Errors
///
/// The first construct that cannot be compiled, with its source location.
pub fn compile(program: &Program, sources: &Sources) -> Result<Compiled, Diagnostics> {
    compile_with(program, sources, &[])
}

/// Compiles a program with the libraries that its extern functions come from. The result must be
/// [verified](p4_object::verify), like every object: a library's code is not checked here.
///
/// # Errors
///
/// The first construct that cannot be compiled, with its source location.
pub fn compile_with(
    program: &Program,
    sources: &Sources,
    libraries: &[Library],
) -> Result<Compiled, Diagnostics> {
    compiled(program, sources, libraries).map_err(|why| {
        let mut found = Diagnostics::default();
        found.add(why);
        found
    })
}

fn compiled(
    program: &Program,
    sources: &Sources,
    libraries: &[Library],
) -> Result<Compiled, Diagnostic> {
    let whole = program.main.as_ref().map(|main| main.span).unwrap_or_default();
    let elaborated = interpret::elaborate(program).map_err(|why| not_elaborated(&why, whole))?;
    let maps = Maps::new(program, &elaborated)?;
    let written = |paths| written(program, &elaborated, maps.clone(), sources, libraries, paths);
    // With too many paths, joining them gives smaller but slower code.
    for paths in [Paths::Split, Paths::BySet] {
        if let Ok(compiled) = written(paths)
            && compiled.object.code.len() <= MAX_SPLIT
        {
            return Ok(compiled);
        }
    }
    written(Paths::Joined)
}

fn written(
    program: &Program,
    elaborated: &Elaborated,
    mut maps: Maps,
    sources: &Sources,
    libraries: &[Library],
    paths: Paths,
) -> Result<Compiled, Diagnostic> {
    let whole = program.main.as_ref().map(|main| main.span).unwrap_or_default();
    let linked: Vec<_> = libraries.iter().flat_map(Library::exports).collect();
    let mut graph = flat::lower(program, elaborated, &maps, paths, &linked)?;
    if !graph.uses_map(maps.scratch) {
        maps.leave_out_scratch();
    }
    let order = prepare::prepare(&mut graph);
    let liveness = liveness::liveness(&graph, &order);
    let too_wide = || {
        let what = "the program needs more than 512 bytes for what it remembers at once";
        too_much(whole, what.to_owned())
    };
    if liveness.is_too_wide {
        return Err(too_wide());
    }
    let (places, words) = registers::places(&graph, &order, &liveness);
    if words + graph.frame > STACK_WORDS {
        return Err(too_wide());
    }
    let code = emit::emit(&graph, &order, &places);
    if code.too_far || code.instructions.len() > MAX_INSTRUCTIONS {
        let what = format!("the program has {} instructions", code.instructions.len());
        return Err(too_much(whole, format!("{what}: these are too many")));
    }
    let mut object = Object {
        code: code.instructions,
        entry: 0,
        functions: [(0, ENTRY.to_owned())].into(),
        entries: maps.initial(program, elaborated),
        maps: maps.maps.clone(),
        info: Vec::new(),
        keys: graph.keys.iter().map(|key| key.to_string()).collect(),
        digests: maps.digests(elaborated),
        lines: lines(&code.spans, sources),
    };
    p4_object::link(&mut object, &code.linked_calls, libraries).map_err(|why| {
        Diagnostic::error(whole, format!("the libraries cannot be linked: {why}"))
    })?;
    Ok(Compiled { object, maps })
}

/// Builds the line table.
fn lines(spans: &[Span], sources: &Sources) -> Lines {
    let mut lines = Lines::default();
    let mut before = None;
    for (at, span) in spans.iter().enumerate() {
        if before == Some(*span) || *span == Span::default() {
            continue;
        }
        before = Some(*span);
        let Some(place) = sources.locate(*span) else { continue };
        let file = lines.files.iter().position(|one| *one == place.file).unwrap_or_else(|| {
            lines.files.push(place.file.to_owned());
            lines.files.len() - 1
        });
        let (line, column) = (place.line as u32, place.column as u32);
        lines.rows.push(LineRow { at, file, line, column });
    }
    lines
}

fn too_much(span: Span, what: String) -> Diagnostic {
    let help = Some("actions and functions are written out wherever they are called".to_owned());
    NotCompiled { span, what, help }.into()
}

fn not_elaborated(why: &interpret::Error, whole: Span) -> Diagnostic {
    let span = match why {
        interpret::Error::Main(
            NotElaborated::NoValue(span)
            | NotElaborated::TooLarge(span)
            | NotElaborated::NoElements(span)
            | NotElaborated::SameName(_, span),
        ) => *span,
        _ => whole,
    };
    Diagnostic::error(span, why.to_string())
}
