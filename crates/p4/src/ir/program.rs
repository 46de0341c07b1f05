//! What a program declares.

use std::sync::Arc;

use super::expression::{ActionCall, Expression, Set};
use super::statement::Statement;
use super::types::{
    ActionId, BlockId, Declared, Enum, ExternId, InstanceId, NewType, Record, StateId, TableId,
    Type, ValueSetId, VariableId,
};
use super::value::Value;
use crate::source::Span;
use crate::syntax::ast::Direction;

/// A program whose names and types are known. Nothing in it calls itself, so that each variable
/// has one place.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Types with fields.
    pub records: Vec<Record>,
    /// Enumerations.
    pub enums: Vec<Enum>,
    /// Types like no other.
    pub new_types: Vec<NewType>,
    /// The names of `error`, in their order: `NoError` is the first.
    pub errors: Vec<Arc<str>>,
    /// The names of `match_kind`.
    pub match_kinds: Vec<Arc<str>>,
    /// Extern objects.
    pub externs: Vec<Extern>,
    /// Extern functions.
    pub extern_functions: Vec<Prototype>,
    /// Variables and parameters.
    pub variables: Vec<Variable>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Actions, of controls and of the top.
    pub actions: Vec<Action>,
    /// Parsers and controls.
    pub blocks: Vec<Block>,
    /// Tables, each of one control.
    pub tables: Vec<Table>,
    /// Value sets, each of one parser.
    pub value_sets: Vec<ValueSet>,
    /// What is made by constructors: at the top, in parsers and in controls.
    pub instances: Vec<Instance>,
    /// The package at the top that is called `main`.
    pub main: Option<Main>,
}

/// `main`
#[derive(Debug, Clone, PartialEq)]
pub struct Main {
    /// Where it stands.
    pub span: Span,
    /// The name of the package: the model.
    pub package: Arc<str>,
    /// What it is made of, in the order of its parameters.
    pub arguments: Vec<Made>,
}

/// A value that a constructor takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// A value, or a parameter of the constructor around it.
    Value(Expression),
    /// A parser, a control or an extern object.
    Instance(InstanceId),
}

/// Something that a constructor makes: once for each time that what is around it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its name.
    pub declared: Declared,
    /// What it is.
    pub of: InstanceKind,
    /// What its constructor takes.
    pub arguments: Vec<Made>,
}

/// What an instance is.
#[derive(Debug, Clone, PartialEq)]
pub enum InstanceKind {
    /// A parser or a control.
    Block(BlockId),
    /// An extern object, with the types that it is made for.
    Extern(ExternId, Vec<Type>),
}

/// A variable, or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub declared: Declared,
    /// Its type.
    pub of: Type,
    /// Which way its value goes, if it is a parameter.
    pub direction: Option<Direction>,
}

/// What is told of a function, an action or a method by what it takes and gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Prototype {
    /// Its name.
    pub declared: Declared,
    /// The types that it is generic over.
    pub generic: Vec<Arc<str>>,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What it gives.
    pub returns: Type,
}

/// A parameter of a [`Prototype`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub declared: Declared,
    /// Its type.
    pub of: Type,
    /// Which way its value goes.
    pub direction: Direction,
    /// Its value where a call gives none.
    pub default: Option<Expression>,
}

/// An extern object.
#[derive(Debug, Clone, PartialEq)]
pub struct Extern {
    /// Its name.
    pub declared: Declared,
    /// The types that it is generic over.
    pub generic: Vec<Arc<str>>,
    /// Its constructors.
    pub constructors: Vec<Prototype>,
    /// Its methods.
    pub methods: Vec<Prototype>,
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub declared: Declared,
    /// What it takes.
    pub parameters: Vec<VariableId>,
    /// What it gives.
    pub returns: Type,
    /// What it does.
    pub body: Vec<Statement>,
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Its name.
    pub declared: Declared,
    /// What it takes. Those without a direction are an entry's where a table runs it.
    pub parameters: Vec<VariableId>,
    /// What it does.
    pub body: Vec<Statement>,
}

/// A parser or a control.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name.
    pub declared: Declared,
    /// What it takes. A packet is no variable that holds anything.
    pub parameters: Vec<VariableId>,
    /// What its constructor takes.
    pub constructor: Vec<Parameter>,
    /// What is made with it.
    pub instances: Vec<InstanceId>,
    /// Its variables and their first values.
    pub locals: Vec<Statement>,
    /// What it does.
    pub body: BlockBody,
}

/// What a parser or a control does.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockBody {
    /// A parser: it begins in the first of its states.
    Parser {
        /// Its states.
        states: Vec<State>,
        /// Its value sets.
        value_sets: Vec<ValueSetId>,
    },
    /// A control.
    Control {
        /// Its tables.
        tables: Vec<TableId>,
        /// Its actions.
        actions: Vec<ActionId>,
        /// `apply`.
        apply: Vec<Statement>,
    },
}

/// A state of a parser.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Its name.
    pub declared: Declared,
    /// What it does.
    pub body: Vec<Statement>,
    /// Where it goes then.
    pub transition: Transition,
}

/// Where a parser goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// There.
    To(Target),
    /// Where the first case leads that is met; else it stops with `NoMatch`.
    Select(Vec<Expression>, Vec<(Vec<Set>, Target)>),
}

/// What comes behind a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A state.
    State(StateId),
    /// The end.
    Accept,
    /// The end, and the packet is wrong.
    Reject,
}

/// `value_set<TYPE>(size) name;`
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet {
    /// Its name.
    pub declared: Declared,
    /// What it holds.
    pub of: Type,
    /// The most values that it holds.
    pub size: u32,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub declared: Declared,
    /// What is looked up.
    pub keys: Vec<Key>,
    /// What an entry may do.
    pub actions: Vec<TableAction>,
    /// What is done where no entry is found: one of `actions`, with all its arguments.
    pub default_action: (usize, Vec<Value>),
    /// Whether the control plane may not change that.
    pub default_is_constant: bool,
    /// The entries that the program gives.
    pub entries: Vec<Entry>,
    /// Whether the control plane may not change these.
    pub entries_are_constant: bool,
    /// The most entries that it holds.
    pub size: u32,
    /// What counts for each entry: a `DirectCounter`.
    pub direct_counter: Option<InstanceId>,
    /// What meters for each entry: a `DirectMeter`.
    pub direct_meter: Option<InstanceId>,
}

/// A part of a table's key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// What the control plane calls it.
    pub name: Arc<str>,
    /// What is said beside it.
    pub annotations: Vec<crate::syntax::ast::Annotation>,
    /// What is looked up.
    pub expression: Expression,
    /// How it is compared.
    pub matched: MatchKind,
}

/// How a part of a key is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// It is the value.
    Exact,
    /// Its first bits are; the entry with most of them counts.
    Lpm,
    /// Under the entry's mask; the entry with the highest priority counts.
    Ternary,
    /// It is between two values, both included; by priority too.
    Range,
    /// It is the value, or any where the entry has none; by priority too.
    Optional,
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableAction {
    /// The action, and the arguments that the table binds.
    pub call: ActionCall,
    /// `@tableonly`: never by default.
    pub table_only: bool,
    /// `@defaultonly`: never by an entry.
    pub default_only: bool,
}

/// An entry of a table that the program gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What the key is to be; values that are known.
    pub keys: Vec<Set>,
    /// One of the table's actions, and the values of the parameters without a direction.
    pub action: (usize, Vec<Value>),
    /// Where several entries fit, the highest is taken (section 14.2.1.4).
    pub priority: u32,
    /// Whether the control plane may not change it.
    pub constant: bool,
}

impl Program {
    /// The number that a represented enumeration or a type of its own is; others are themselves.
    pub fn representation(&self, of: &Type) -> Type {
        match of {
            Type::Enum(id) => {
                let represented = &self.enums[id.index()].representation;
                represented.clone().unwrap_or_else(|| of.clone())
            }
            Type::New(id) => self.representation(&self.new_types[id.index()].of),
            _ => of.clone(),
        }
    }
}
