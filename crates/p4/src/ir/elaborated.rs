//! What a program is made of once `main` is made: each parser, control, table and object at its
//! place, by the name that the control plane knows (P4_16 specification, section 15.3.2).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use num_traits::ToPrimitive;

use super::program::{BlockBody, InstanceKind, Made, Program};
use super::types::{BlockId, Declared, ExternId, InstanceId, TableId, Type, ValueSetId};
use super::value::Value;
use super::{Expression, ExpressionKind, arithmetic};
use crate::source::Span;
use crate::syntax::ast::Annotation;

/// All that `main` is made of.
#[derive(Debug, Clone, Default)]
pub struct Elaborated {
    /// Parsers and controls.
    pub blocks: Vec<PlacedBlock>,
    /// Tables: which, and their names.
    pub tables: Vec<(TableId, String)>,
    /// Value sets: which, and their names.
    pub value_sets: Vec<(ValueSetId, String)>,
    /// Objects of others.
    pub objects: Vec<PlacedObject>,
    /// The objects at the top, by what declares them.
    pub top: HashMap<InstanceId, usize>,
    /// What the package is made of, in the order of its parameters: places in `blocks`.
    pub main: Vec<usize>,
}

/// A parser or a control at its place.
#[derive(Debug, Clone)]
pub struct PlacedBlock {
    /// Which.
    pub block: BlockId,
    /// The name of its place.
    pub name: String,
    /// What its constructor was given.
    pub constructor: Vec<Expression>,
    /// What is made in it: places in `blocks` or `objects`.
    pub inside: HashMap<InstanceId, usize>,
    /// Its tables: places in `tables`.
    pub tables: HashMap<TableId, usize>,
    /// Its value sets: places in `value_sets`.
    pub value_sets: HashMap<ValueSetId, usize>,
}

/// An object of others at its place.
#[derive(Debug, Clone)]
pub struct PlacedObject {
    /// What it is.
    pub of: ExternId,
    /// The types that it is made for.
    pub types: Vec<Type>,
    /// The name of its place.
    pub name: String,
    /// What its constructor was given.
    pub arguments: Vec<Expression>,
    /// If it counts or meters for the entries of a table, which: a place in `tables`.
    pub table: Option<usize>,
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Where it is declared.
    pub span: Span,
}

impl PlacedObject {
    /// Its elements: the first number that its constructor was given.
    pub fn elements(&self) -> u64 {
        match self.arguments.first().and_then(Expression::constant) {
            Some(Value::Integer(size)) => size.to_u64().unwrap_or_default(),
            _ => 0,
        }
    }
}

/// Why `main` cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMade {
    /// There is none.
    #[error("the program has no `main`")]
    NoMain,
    /// It has more than [`MAX_PARTS`] parts.
    #[error("the program is made of more than {MAX_PARTS} parts")]
    TooMany,
    /// A constructor's argument has no value, at this place.
    #[error("this has no value when the program is made")]
    NoValue(Span),
    /// An object has more than [`MAX_ELEMENTS`] elements, at this place.
    #[error("this has more than {MAX_ELEMENTS} elements")]
    TooLarge(Span),
    /// An object has no elements, at this place.
    #[error("this has no elements")]
    NoElements(Span),
    /// Two tables have one name.
    #[error("the control plane knows two tables as `{0}`")]
    SameName(String, Span),
}

/// More parts than that is no program, but one that doubles itself at each level.
pub const MAX_PARTS: usize = 10_000;
/// The most elements of an object: a register's.
pub const MAX_ELEMENTS: u32 = 1 << 24;

impl Program {
    /// All that `main` is made of.
    ///
    /// # Errors
    ///
    /// Why it cannot be made.
    pub fn elaborate(&self) -> Result<Elaborated, NotMade> {
        let main = self.main.as_ref().ok_or(NotMade::NoMain)?;
        let mut made = Elaborated::default();
        let inner: HashSet<InstanceId> =
            self.blocks.iter().flat_map(|block| block.instances.iter().copied()).collect();
        for (at, instance) in (0..).map(InstanceId).zip(&self.instances) {
            if let InstanceKind::Extern(..) = instance.of
                && !inner.contains(&at)
            {
                let place = self.place_object(&mut made, at, "", &[])?;
                made.top.insert(at, place);
            }
        }
        for argument in &main.arguments {
            let Made::Instance(id) = argument else { continue };
            let InstanceKind::Block(block) = self.instances[id.index()].of else { continue };
            // The parts of a package have no names of their own: those of their types stand for them.
            let name = control_plane_name(&self.blocks[block.index()].declared, "");
            let place = self.place_block(&mut made, *id, name, &[])?;
            made.main.push(place);
        }
        let mut names = HashSet::new();
        for (id, name) in &made.tables {
            if !names.insert(&**name) {
                let span = self.tables[id.index()].declared.span;
                return Err(NotMade::SameName(name.clone(), span));
            }
        }
        Ok(made)
    }

    fn place_block(
        &self,
        made: &mut Elaborated,
        id: InstanceId,
        name: String,
        around: &[Expression],
    ) -> Result<usize, NotMade> {
        let instance = &self.instances[id.index()];
        let InstanceKind::Block(block) = instance.of else { return Err(NotMade::NoMain) };
        let constructor = values(&instance.arguments, around)?;
        let at = made.blocks.len();
        if at + made.objects.len() + made.tables.len() > MAX_PARTS {
            return Err(NotMade::TooMany);
        }
        made.blocks.push(PlacedBlock {
            block,
            name: name.clone(),
            constructor: constructor.clone(),
            inside: HashMap::new(),
            tables: HashMap::new(),
            value_sets: HashMap::new(),
        });
        let of = &self.blocks[block.index()];
        match &of.body {
            BlockBody::Control { tables, .. } => {
                for table in tables {
                    let declared = &self.tables[table.index()].declared;
                    made.tables.push((*table, control_plane_name(declared, &name)));
                    made.blocks[at].tables.insert(*table, made.tables.len() - 1);
                }
            }
            BlockBody::Parser { value_sets, .. } => {
                for set in value_sets {
                    let declared = &self.value_sets[set.index()].declared;
                    made.value_sets.push((*set, control_plane_name(declared, &name)));
                    made.blocks[at].value_sets.insert(*set, made.value_sets.len() - 1);
                }
            }
        }
        for inner in &of.instances {
            let declared = &self.instances[inner.index()].declared;
            let place = match self.instances[inner.index()].of {
                InstanceKind::Block(_) => {
                    let name = control_plane_name(declared, &name);
                    self.place_block(made, *inner, name, &constructor)?
                }
                InstanceKind::Extern(..) => self.place_object(made, *inner, &name, &constructor)?,
            };
            made.blocks[at].inside.insert(*inner, place);
        }
        for (table, place) in made.blocks[at].tables.clone() {
            let table = &self.tables[table.index()];
            for direct in table.direct_counter.iter().chain(&table.direct_meter) {
                if let Some(object) = made.blocks[at].inside.get(direct) {
                    made.objects[*object].table = Some(place);
                }
            }
        }
        Ok(at)
    }

    fn place_object(
        &self,
        made: &mut Elaborated,
        id: InstanceId,
        around_name: &str,
        around: &[Expression],
    ) -> Result<usize, NotMade> {
        let instance = &self.instances[id.index()];
        let InstanceKind::Extern(of, types) = &instance.of else { return Err(NotMade::NoMain) };
        let arguments = values(&instance.arguments, around)?;
        let is_large = |one: &&Expression| matches!(one.constant(), Some(Value::Integer(size)) if *size > MAX_ELEMENTS.into());
        if let Some(large) = arguments.iter().find(is_large) {
            return Err(NotMade::TooLarge(large.span));
        }
        let is_empty = |one: &&Expression| matches!(one.constant(), Some(Value::Integer(size)) if *size == 0.into());
        if let (Some(_), Some(none)) = (self.model_object(*of), arguments.iter().find(is_empty)) {
            return Err(NotMade::NoElements(none.span));
        }
        made.objects.push(PlacedObject {
            of: *of,
            types: types.clone(),
            name: control_plane_name(&instance.declared, around_name),
            arguments,
            table: None,
            annotations: instance.declared.annotations.clone(),
            span: instance.declared.span,
        });
        Ok(made.objects.len() - 1)
    }
}

/// The values of arguments, where the constructor around them was given these.
fn values(arguments: &[Made], around: &[Expression]) -> Result<Vec<Expression>, NotMade> {
    let value = |made: &Made| match made {
        Made::Value(value) => Some(known(value, around).ok_or(NotMade::NoValue(value.span))),
        Made::Instance(_) => None,
    };
    arguments.iter().filter_map(value).collect()
}

/// An expression where the constructor around it was given these.
fn known(value: &Expression, around: &[Expression]) -> Option<Expression> {
    use ExpressionKind as K;
    let constant = |result: Value| Expression { kind: K::Constant(result), ..value.clone() };
    let inside = |of: &Expression| known(of, around);
    Some(match &value.kind {
        K::ConstructorParameter(at) => return around.get(*at).cloned(),
        K::Unary(operator, of) => {
            let of = inside(of)?;
            constant(arithmetic::unary(*operator, of.constant()?, &of.of).ok()?)
        }
        K::Binary(operator, one, other) => {
            let (one, other) = (inside(one)?, inside(other)?);
            let (left, right) = ((one.constant()?, &one.of), (other.constant()?, &other.of));
            constant(arithmetic::binary(*operator, left, right).ok()?)
        }
        K::Cast(of) => constant(arithmetic::cast(inside(of)?.constant()?, &value.of)),
        K::Slice(of, high, low) => match inside(of)?.constant()? {
            Value::Integer(of) => constant(arithmetic::slice(of, *high, *low).into()),
            _ => return None,
        },
        K::Choose(condition, yes, no) => {
            let is = *inside(condition)?.constant()? == Value::Bool(true);
            return inside(if is { yes } else { no });
        }
        K::Field(of, at) => match inside(of)?.kind {
            K::Constant(Value::Record { mut fields, .. }) => constant(fields.swap_remove(*at)),
            K::Fields(mut fields) => fields.swap_remove(*at),
            _ => return None,
        },
        K::Fields(all) => {
            let all = all.iter().map(inside).collect::<Option<Vec<_>>>()?;
            Expression { kind: K::Fields(all), ..value.clone() }
        }
        _ => value.clone(),
    })
}

/// The name by which the control plane knows what is declared here (section 18.3.1): `@name("…")`
/// gives another one, from the top if it begins with a dot.
pub fn control_plane_name(declared: &Declared, around: &str) -> String {
    let name: Arc<str> = match name_annotation(&declared.annotations) {
        Some(name) => name,
        None => declared.name.clone(),
    };
    match name.strip_prefix('.') {
        Some(whole) => whole.to_owned(),
        None if around.is_empty() => name.to_string(),
        None => format!("{around}.{name}"),
    }
}

/// What `@name("…")` says.
pub(crate) fn name_annotation(annotations: &[Annotation]) -> Option<Arc<str>> {
    let name = annotations.iter().find(|one| &*one.name.text == "name")?;
    match &name.body[..] {
        [text] => Some(text.trim_matches('"').into()),
        _ => None,
    }
}
