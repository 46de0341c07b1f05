//! The checked program and its declarations.

use std::sync::Arc;

use p4_syntax::ast::Direction;
use p4_syntax::source::Span;

use super::expression::{ActionCall, Expression, Set};
use super::statement::Statement;
use super::types::{
    ActionId, BlockId, Declared, Enum, ExternId, InstanceId, NewType, Record, StateId, TableId,
    Type, ValueSetId, VariableId,
};
use super::value::Value;
use crate::model::Object;

/// A program after name resolution and type checking. No function or action is recursive, so each
/// variable needs only one storage location.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Headers, header unions and structs.
    pub records: Vec<Record>,
    /// Enumerations.
    pub enums: Vec<Enum>,
    /// New types (`type TYPE name`).
    pub new_types: Vec<NewType>,
    /// Members of `error`, in order of declaration. `NoError` is the first.
    pub errors: Vec<Arc<str>>,
    /// Members of `match_kind`.
    pub match_kinds: Vec<Arc<str>>,
    /// Extern objects.
    pub externs: Vec<Extern>,
    /// Extern functions.
    pub extern_functions: Vec<Prototype>,
    /// Variables and parameters.
    pub variables: Vec<Variable>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Actions, of controls and at top level.
    pub actions: Vec<Action>,
    /// Parsers and controls.
    pub blocks: Vec<Block>,
    /// Tables. Each belongs to one control.
    pub tables: Vec<Table>,
    /// Value sets. Each belongs to one parser.
    pub value_sets: Vec<ValueSet>,
    /// Instances: at top level, in parsers and in controls.
    pub instances: Vec<Instance>,
    /// The top-level package instance `main`.
    pub main: Option<Main>,
}

/// The package instance `main`.
#[derive(Debug, Clone, PartialEq)]
pub struct Main {
    /// Source span of the instantiation.
    pub span: Span,
    /// Name of the package, which identifies the architecture model.
    pub package: Arc<str>,
    /// Constructor arguments, in the order of the package's parameters.
    pub arguments: Vec<ConstructorArgument>,
}

/// An argument of a constructor.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstructorArgument {
    /// A value, or a constructor parameter of the enclosing parser or control.
    Value(Expression),
    /// An instance of a parser, a control or an extern object.
    Instance(InstanceId),
}

/// An instantiation. It is repeated for each instance of the enclosing parser or control.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name of the instance.
    pub declared: Declared,
    /// The instantiated parser, control or extern.
    pub of: InstanceKind,
    /// Constructor arguments.
    pub arguments: Vec<ConstructorArgument>,
}

/// The kinds of instances.
#[derive(Debug, Clone, PartialEq)]
pub enum InstanceKind {
    /// A parser or a control.
    Block(BlockId),
    /// An extern object and its type arguments.
    Extern(ExternId, Vec<Type>),
}

/// A variable, or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Name.
    pub declared: Declared,
    /// Type.
    pub of: Type,
    /// Direction, for a parameter.
    pub direction: Option<Direction>,
}

/// Signature of a function, an action or a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Prototype {
    /// Name.
    pub declared: Declared,
    /// Names of its type parameters.
    pub generic: Vec<Arc<str>>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Return type.
    pub returns: Type,
}

/// A parameter of a [`Prototype`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Name.
    pub declared: Declared,
    /// Type.
    pub of: Type,
    /// Direction.
    pub direction: Direction,
    /// Default value, for calls without an argument.
    pub default: Option<Expression>,
}

/// An extern object.
#[derive(Debug, Clone, PartialEq)]
pub struct Extern {
    /// Name.
    pub declared: Declared,
    /// Names of its type parameters.
    pub generic: Vec<Arc<str>>,
    /// Constructors.
    pub constructors: Vec<Prototype>,
    /// Methods.
    pub methods: Vec<Prototype>,
    /// The model's object that it declares.
    pub object: Option<Object>,
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Name.
    pub declared: Declared,
    /// Parameters.
    pub parameters: Vec<VariableId>,
    /// Return type.
    pub returns: Type,
    /// Statements.
    pub body: Vec<Statement>,
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Name.
    pub declared: Declared,
    /// Parameters. In a table, an entry supplies the arguments for directionless parameters.
    pub parameters: Vec<VariableId>,
    /// Statements.
    pub body: Vec<Statement>,
}

/// A parser or a control.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Name.
    pub declared: Declared,
    /// Parameters of `apply`. A packet parameter holds no value.
    pub parameters: Vec<VariableId>,
    /// Constructor parameters.
    pub constructor: Vec<Parameter>,
    /// Instances declared in the block.
    pub instances: Vec<InstanceId>,
    /// Local variable declarations, with their initializers.
    pub locals: Vec<Statement>,
    /// The states of the parser, or the body of the control.
    pub body: BlockBody,
}

/// Body of a parser or a control.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockBody {
    /// A parser, which starts in its first state.
    Parser {
        /// Parser states.
        states: Vec<State>,
        /// Value sets.
        value_sets: Vec<ValueSetId>,
    },
    /// A control.
    Control {
        /// Tables.
        tables: Vec<TableId>,
        /// Actions.
        actions: Vec<ActionId>,
        /// `apply`.
        apply: Vec<Statement>,
    },
}

/// A parser state.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Name.
    pub declared: Declared,
    /// Statements.
    pub body: Vec<Statement>,
    /// The transition out of the state.
    pub transition: Transition,
}

/// The transition out of a parser state.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// An unconditional transition.
    To(Target),
    /// A transition to the target of the first matching case. Without a match, the parser stops
    /// with `NoMatch`.
    Select(Vec<Expression>, Vec<(Vec<Set>, Target)>),
}

/// Target of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Another state.
    State(StateId),
    /// `accept`: parsing succeeds.
    Accept,
    /// `reject`: the packet is malformed.
    Reject,
}

/// `value_set<TYPE>(size) name;`
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet {
    /// Name.
    pub declared: Declared,
    /// Type of the elements.
    pub of: Type,
    /// Maximum number of elements.
    pub size: u32,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name.
    pub declared: Declared,
    /// Key fields.
    pub keys: Vec<Key>,
    /// Actions that an entry may use.
    pub actions: Vec<TableAction>,
    /// The default action: an index into `actions`, and all arguments.
    pub default_action: (usize, Vec<Value>),
    /// True if the control plane may not change the default action.
    pub default_is_constant: bool,
    /// Entries from the program's `entries` property.
    pub entries: Vec<Entry>,
    /// True if the control plane may not change these entries.
    pub entries_are_constant: bool,
    /// Maximum number of entries.
    pub size: u32,
    /// The `DirectCounter` with one cell for each entry.
    pub direct_counter: Option<InstanceId>,
    /// The `DirectMeter` with one cell for each entry.
    pub direct_meter: Option<InstanceId>,
}

/// One field of a table key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Name of the field in the control plane API.
    pub name: Arc<str>,
    /// Annotations of the field.
    pub annotations: Vec<p4_syntax::ast::Annotation>,
    /// The expression to look up.
    pub expression: Expression,
    /// Match kind.
    pub matched: MatchKind,
}

/// Match kind of a key field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The value must be equal.
    Exact,
    /// Longest prefix match.
    Lpm,
    /// The masked value must be equal. The matching entry with the highest priority wins.
    Ternary,
    /// The value must be between two bounds, both inclusive. The highest priority wins.
    Range,
    /// The value must be equal, unless the entry omits it. The highest priority wins.
    Optional,
}

/// An action in a table's `actions` list.
#[derive(Debug, Clone, PartialEq)]
pub struct TableAction {
    /// The action, and the arguments bound in the table.
    pub call: ActionCall,
    /// `@tableonly`: not allowed as the default action.
    pub table_only: bool,
    /// `@defaultonly`: not allowed in an entry.
    pub default_only: bool,
}

/// A table entry from the program's `entries` property.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Keysets, one for each key field. Their values are constants.
    pub keys: Vec<Set>,
    /// An index into the table's actions, and the arguments for directionless parameters.
    pub action: (usize, Vec<Value>),
    /// Priority. If several entries match, the one with the highest value wins (section 14.2.1.4).
    pub priority: u32,
    /// True if the control plane may not change the entry.
    pub constant: bool,
}

impl Program {
    /// Returns the underlying type of a serializable enumeration or a new type; other types are
    /// returned unchanged.
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
