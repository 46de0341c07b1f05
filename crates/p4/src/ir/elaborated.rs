//! Elaboration: the instances that `main` creates. Each parser, control, table and extern object
//! has its fully qualified name in the control plane API (P4_16 specification, section 15.3.2).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use num_traits::ToPrimitive;
use p4_syntax::ast::Annotation;
use p4_syntax::source::Span;

use super::program::{BlockBody, ConstructorArgument, InstanceKind, Program};
use super::types::{BlockId, Declared, ExternId, InstanceId, TableId, Type, ValueSetId};
use super::value::Value;
use super::{Expression, ExpressionKind, arithmetic};

/// All instances of a program.
#[derive(Debug, Clone, Default)]
pub struct Elaborated {
    /// Parsers and controls.
    pub blocks: Vec<PlacedBlock>,
    /// Tables: id and name.
    pub tables: Vec<(TableId, String)>,
    /// Value sets: id and name.
    pub value_sets: Vec<(ValueSetId, String)>,
    /// Extern objects.
    pub objects: Vec<PlacedObject>,
    /// Top-level extern objects, by their declarations.
    pub top: HashMap<InstanceId, usize>,
    /// Arguments of the package, in the order of its parameters: indices into `blocks`.
    pub main: Vec<usize>,
}

/// An instance of a parser or a control.
#[derive(Debug, Clone)]
pub struct PlacedBlock {
    /// The parser or control.
    pub block: BlockId,
    /// Fully qualified name.
    pub name: String,
    /// Constructor arguments.
    pub constructor: Vec<Expression>,
    /// Instances in the block: indices into `blocks` or `objects`.
    pub inside: HashMap<InstanceId, usize>,
    /// Tables: indices into `tables`.
    pub tables: HashMap<TableId, usize>,
    /// Value sets: indices into `value_sets`.
    pub value_sets: HashMap<ValueSetId, usize>,
}

/// An instance of an extern object.
#[derive(Debug, Clone)]
pub struct PlacedObject {
    /// The extern.
    pub of: ExternId,
    /// Type arguments.
    pub types: Vec<Type>,
    /// Fully qualified name.
    pub name: String,
    /// Constructor arguments.
    pub arguments: Vec<Expression>,
    /// Owner of a direct counter or a direct meter: an index into `tables`.
    pub table: Option<usize>,
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
    /// Source span of the declaration.
    pub span: Span,
}

impl PlacedObject {
    /// Returns the number of elements: the first constructor argument.
    pub fn elements(&self) -> u64 {
        match self.arguments.first().and_then(Expression::constant) {
            Some(Value::Integer(size)) => size.to_u64().unwrap_or_default(),
            _ => 0,
        }
    }
}

/// The reason why elaboration of `main` failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotElaborated {
    /// The program has no `main`.
    #[error("the program has no `main`")]
    NoMain,
    /// The program has more than [`MAX_PARTS`] parts.
    #[error("the program has more than {MAX_PARTS} instances")]
    TooMany,
    /// A constructor argument at this span is not a compile-time known value.
    #[error("this is not a compile-time known value")]
    NoValue(Span),
    /// An object at this span has more than [`MAX_ELEMENTS`] elements.
    #[error("this has more than {MAX_ELEMENTS} elements")]
    TooLarge(Span),
    /// An object at this span has no elements.
    #[error("this has no elements")]
    NoElements(Span),
    /// Two tables have the same name.
    #[error("the control plane knows two tables as `{0}`")]
    SameName(String, Span),
}

/// Maximum number of parts. It stops programs that double in size at each level.
pub const MAX_PARTS: usize = 10_000;
/// Maximum number of elements of an object, such as a register.
pub const MAX_ELEMENTS: u32 = 1 << 24;

impl Program {
    /// Elaborates the program from `main`.
    ///
    /// # Errors
    ///
    /// If `main` is missing or cannot be elaborated.
    pub fn elaborate(&self) -> Result<Elaborated, NotElaborated> {
        let main = self.main.as_ref().ok_or(NotElaborated::NoMain)?;
        let mut elaborated = Elaborated::default();
        let inner: HashSet<InstanceId> =
            self.blocks.iter().flat_map(|block| block.instances.iter().copied()).collect();
        for (at, instance) in (0..).map(InstanceId).zip(&self.instances) {
            if let InstanceKind::Extern(..) = instance.of
                && !inner.contains(&at)
            {
                let place = self.place_object(&mut elaborated, at, "", &[])?;
                elaborated.top.insert(at, place);
            }
        }
        for argument in &main.arguments {
            let ConstructorArgument::Instance(id) = argument else { continue };
            let InstanceKind::Block(block) = self.instances[id.index()].of else { continue };
            // Arguments of a package have no names, so the names of their types are used.
            let name = control_plane_name(&self.blocks[block.index()].declared, "");
            let place = self.place_block(&mut elaborated, *id, name, &[])?;
            elaborated.main.push(place);
        }
        let mut names = HashSet::new();
        for (id, name) in &elaborated.tables {
            if !names.insert(&**name) {
                let span = self.tables[id.index()].declared.span;
                return Err(NotElaborated::SameName(name.clone(), span));
            }
        }
        Ok(elaborated)
    }

    fn place_block(
        &self,
        elaborated: &mut Elaborated,
        id: InstanceId,
        name: String,
        around: &[Expression],
    ) -> Result<usize, NotElaborated> {
        let instance = &self.instances[id.index()];
        let InstanceKind::Block(block) = instance.of else { return Err(NotElaborated::NoMain) };
        let constructor = values(&instance.arguments, around)?;
        let at = elaborated.blocks.len();
        if at + elaborated.objects.len() + elaborated.tables.len() > MAX_PARTS {
            return Err(NotElaborated::TooMany);
        }
        elaborated.blocks.push(PlacedBlock {
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
                    elaborated.tables.push((*table, control_plane_name(declared, &name)));
                    elaborated.blocks[at].tables.insert(*table, elaborated.tables.len() - 1);
                }
            }
            BlockBody::Parser { value_sets, .. } => {
                for set in value_sets {
                    let declared = &self.value_sets[set.index()].declared;
                    elaborated.value_sets.push((*set, control_plane_name(declared, &name)));
                    elaborated.blocks[at].value_sets.insert(*set, elaborated.value_sets.len() - 1);
                }
            }
        }
        for inner in &of.instances {
            let declared = &self.instances[inner.index()].declared;
            let place = match self.instances[inner.index()].of {
                InstanceKind::Block(_) => {
                    let name = control_plane_name(declared, &name);
                    self.place_block(elaborated, *inner, name, &constructor)?
                }
                InstanceKind::Extern(..) => {
                    self.place_object(elaborated, *inner, &name, &constructor)?
                }
            };
            elaborated.blocks[at].inside.insert(*inner, place);
        }
        for (table, place) in elaborated.blocks[at].tables.clone() {
            let table = &self.tables[table.index()];
            for direct in table.direct_counter.iter().chain(&table.direct_meter) {
                if let Some(object) = elaborated.blocks[at].inside.get(direct) {
                    elaborated.objects[*object].table = Some(place);
                }
            }
        }
        Ok(at)
    }

    fn place_object(
        &self,
        elaborated: &mut Elaborated,
        id: InstanceId,
        around_name: &str,
        around: &[Expression],
    ) -> Result<usize, NotElaborated> {
        let instance = &self.instances[id.index()];
        let InstanceKind::Extern(of, types) = &instance.of else {
            return Err(NotElaborated::NoMain);
        };
        let arguments = values(&instance.arguments, around)?;
        let is_large = |one: &&Expression| matches!(one.constant(), Some(Value::Integer(size)) if *size > MAX_ELEMENTS.into());
        if let Some(large) = arguments.iter().find(is_large) {
            return Err(NotElaborated::TooLarge(large.span));
        }
        let is_empty = |one: &&Expression| matches!(one.constant(), Some(Value::Integer(size)) if *size == 0.into());
        if let (Some(_), Some(none)) = (self.model_object(*of), arguments.iter().find(is_empty)) {
            return Err(NotElaborated::NoElements(none.span));
        }
        elaborated.objects.push(PlacedObject {
            of: *of,
            types: types.clone(),
            name: control_plane_name(&instance.declared, around_name),
            arguments,
            table: None,
            annotations: instance.declared.annotations.clone(),
            span: instance.declared.span,
        });
        Ok(elaborated.objects.len() - 1)
    }
}

/// Evaluates constructor arguments, given the enclosing block's constructor arguments.
fn values(
    arguments: &[ConstructorArgument],
    around: &[Expression],
) -> Result<Vec<Expression>, NotElaborated> {
    let value = |elaborated: &ConstructorArgument| match elaborated {
        ConstructorArgument::Value(value) => {
            Some(known(value, around).ok_or(NotElaborated::NoValue(value.span)))
        }
        ConstructorArgument::Instance(_) => None,
    };
    arguments.iter().filter_map(value).collect()
}

/// Evaluates an expression, given the enclosing block's constructor arguments.
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

/// Returns the name of a declaration in the control plane API (section 18.3.1). `@name("…")`
/// overrides the declared name, and replaces the fully qualified name if it starts with a dot.
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

/// Returns the argument of `@name("…")`.
pub(crate) fn name_annotation(annotations: &[Annotation]) -> Option<Arc<str>> {
    let name = annotations.iter().find(|one| &*one.name.text == "name")?;
    match &name.body[..] {
        [text] => Some(text.trim_matches('"').into()),
        _ => None,
    }
}
