//! Programs as they are written (P4_16 specification, appendix G), each part with its place.

use std::sync::Arc;

use crate::number::Integer;
use crate::source::Span;

/// A name, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: Arc<str>,
    /// Where it stands.
    pub span: Span,
}

/// `@name`, `@name(…)` or `@name[…]`, which say something beside the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Its name.
    pub name: Name,
    /// What its brackets hold, word by word: each annotation has a grammar of its own.
    pub body: Vec<Arc<str>>,
}

/// A whole program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// What it declares, in its order.
    pub declarations: Vec<Declaration>,
}

/// A declaration, at the top or within another.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Its name; errors and match kinds, which add to one enumeration, have that one's.
    pub name: Name,
    /// The types that it is generic over.
    pub type_parameters: Vec<Name>,
    /// What it declares.
    pub kind: DeclarationKind,
}

/// What a declaration declares.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarationKind {
    /// `const TYPE name = value;`
    Constant(Type, Expression),
    /// `TYPE name = value;`
    Variable(Type, Option<Expression>),
    /// `TYPE(arguments) name;`
    Instance(Type, Vec<Argument>),
    /// `typedef TYPE name;`
    Typedef(Type),
    /// `type TYPE name;`: like no other.
    NewType(Type),
    /// `header name { … }`
    Header(Vec<Field>),
    /// `header_union name { … }`
    HeaderUnion(Vec<Field>),
    /// `struct name { … }`
    Struct(Vec<Field>),
    /// `enum name { … }` or `enum TYPE name { a = 1, … }`
    Enum(Option<Type>, Vec<(Name, Option<Expression>)>),
    /// `error { … }`
    Error(Vec<Name>),
    /// `match_kind { … }`
    MatchKind(Vec<Name>),
    /// `extern name { … }`: its methods; a constructor has the name of the extern.
    ExternObject(Vec<Method>),
    /// `extern TYPE name(…);`
    ExternFunction(Type, Vec<Parameter>),
    /// `TYPE name(…) { … }`
    Function(Type, Vec<Parameter>, Block),
    /// `action name(…) { … }`
    Action(Vec<Parameter>, Block),
    /// `table name { … }`
    Table(Table),
    /// `value_set<TYPE>(size) name;`
    ValueSet(Type, Expression),
    /// `parser name(…);`
    ParserType(Vec<Parameter>),
    /// `control name(…);`
    ControlType(Vec<Parameter>),
    /// `package name(…);`
    Package(Vec<Parameter>),
    /// `parser name(…)(…) { … }`
    Parser(Parser),
    /// `control name(…)(…) { … apply { … } }`
    Control(Control),
}

/// A field of a header or a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub of: Type,
    /// Its name.
    pub name: Name,
}

/// A method of an extern.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// What it gives; None for a constructor.
    pub returns: Option<Type>,
    /// Its name.
    pub name: Name,
    /// The types that it is generic over.
    pub type_parameters: Vec<Name>,
    /// What it takes.
    pub parameters: Vec<Parameter>,
}

/// Which way a parameter's value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Known when the program is compiled, or set by the control plane.
    None,
    /// To what is called.
    In,
    /// From what is called.
    Out,
    /// Both.
    InOut,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Which way its value goes.
    pub direction: Direction,
    /// Its type.
    pub of: Type,
    /// Its name.
    pub name: Name,
    /// Its value where a call gives none.
    pub default: Option<Expression>,
}

/// A parser.
#[derive(Debug, Clone, PartialEq)]
pub struct Parser {
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What its constructor takes.
    pub constructor: Vec<Parameter>,
    /// What it declares in front of its states.
    pub locals: Vec<Declaration>,
    /// Its states.
    pub states: Vec<State>,
}

/// A state of a parser.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Name,
    /// What it does.
    pub body: Vec<Statement>,
    /// Where it goes then; None for `reject`, which nobody wrote.
    pub transition: Option<Transition>,
}

/// Where a parser goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// To a state.
    To(Name),
    /// To the state whose keys are met first.
    Select {
        /// `select(…)`.
        span: Span,
        /// What is looked at.
        values: Vec<Expression>,
        /// What it is to be, and the state.
        cases: Vec<(Vec<Expression>, Name)>,
    },
}

/// A control.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// What its constructor takes.
    pub constructor: Vec<Parameter>,
    /// What it declares in front of `apply`.
    pub locals: Vec<Declaration>,
    /// `apply { … }`.
    pub apply: Block,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its properties, in their order.
    pub properties: Vec<Property>,
}

/// A property of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Whether the control plane may not change it.
    pub constant: bool,
    /// Its name: `key`, `actions`, `entries`, `default_action`, `size` or another's.
    pub name: Name,
    /// Its value.
    pub value: PropertyValue,
}

/// What a property of a table says.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// `key = { expression: match_kind; … }`
    Key(Vec<KeyElement>),
    /// `actions = { a; b(…); … }`
    Actions(Vec<(Vec<Annotation>, Expression)>),
    /// `entries = { (…): action(…); … }`
    Entries(Vec<Entry>),
    /// Any other.
    Expression(Expression),
}

/// A part of a table's key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyElement {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// What is looked up.
    pub expression: Expression,
    /// How: `exact`, `lpm` and so on.
    pub matched: Name,
}

/// An entry of a table that the program gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What is said beside it.
    pub annotations: Vec<Annotation>,
    /// Whether the control plane may not change it.
    pub constant: bool,
    /// `priority = …`.
    pub priority: Option<Expression>,
    /// What the key is to be.
    pub keys: Vec<Expression>,
    /// The action, with its arguments.
    pub action: Expression,
}

/// Statements in braces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// From brace to brace.
    pub span: Span,
    /// What is in it.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Where it stands.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `;`
    Empty,
    /// `left = right;`, or `left += right;` with its operator.
    Assign(Expression, Option<Binary>, Expression),
    /// `f(…);`
    Call(Expression),
    /// `if (…) … else …`
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    /// `switch (…) { … }`
    Switch(Expression, Vec<SwitchCase>),
    /// `for (…; …; …) …`
    For(Vec<Statement>, Option<Expression>, Vec<Statement>, Box<Statement>),
    /// `for (TYPE name in …) …`
    ForIn(Type, Name, Expression, Box<Statement>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return …;`
    Return(Option<Expression>),
    /// `exit;`
    Exit,
    /// `{ … }`
    Block(Block),
    /// A variable, a constant or an instance.
    Declare(Box<Declaration>),
}

/// A case of a `switch`.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchCase {
    /// What it is for; None for `default`.
    pub label: Option<Expression>,
    /// Where the label stands.
    pub span: Span,
    /// What it does; None for what the next case does.
    pub body: Option<Block>,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// Where it stands.
    pub span: Span,
    /// Which.
    pub kind: TypeKind,
}

/// What a type is.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `int`, of any precision
    Int,
    /// `bit<W>`, or `int<W>` if signed
    Bits {
        /// Its bits.
        width: Box<Expression>,
        /// Whether one of them is a sign.
        signed: bool,
    },
    /// `varbit<W>`
    Varbit(Box<Expression>),
    /// `string`
    String,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `void`
    Void,
    /// `_`: any
    Any,
    /// A name, and types for what it is generic over
    Named(Name, Vec<Type>),
    /// `TYPE[size]`
    Stack(Box<Type>, Box<Expression>),
    /// `tuple<…>`
    Tuple(Vec<Type>),
    /// `list<TYPE>`
    List(Box<Type>),
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The parameter's name, where it is said.
    pub name: Option<Name>,
    /// Its value; None for `_`.
    pub value: Option<Expression>,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExpressionKind,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// A literal.
    Integer(Integer),
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    String(Arc<str>),
    /// A name.
    Name(Arc<str>),
    /// `.name`: one at the top.
    TopName(Name),
    /// `this`.
    This,
    /// `default`, in a set.
    Default,
    /// `_`, in a set.
    DontCare,
    /// `...`: all that is left, by default.
    Rest,
    /// `{#}`: a header that is not valid.
    Invalid,
    /// `left.name`.
    Member(Box<Expression>, Name),
    /// `error.name`.
    ErrorMember(Name),
    /// `left[index]`.
    Index(Box<Expression>, Box<Expression>),
    /// `left[high:low]`.
    Slice(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `f<types>(arguments)`; also a constructor's.
    Call(Box<Expression>, Vec<Type>, Vec<Argument>),
    /// `(TYPE) value`.
    Cast(Type, Box<Expression>),
    /// `-value` and the like.
    Unary(Unary, Box<Expression>),
    /// `left + right` and the like.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `condition ? yes : no`.
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `{a, b}`.
    List(Vec<Expression>),
    /// `{name = value, …}`; whether it ends in `...`.
    Struct(Vec<(Name, Expression)>, bool),
    /// `(a, b)`, in a set.
    Tuple(Vec<Expression>),
}

/// An operator of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Minus,
    /// `+`
    Plus,
}

/// An operator of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `|+|`: stays at the largest value
    AddSaturating,
    /// `|-|`: stays at the smallest value
    SubtractSaturating,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `|`
    Or,
    /// `++`: the bits of both, one behind the other
    Concatenate,
    /// `&&`
    LogicalAnd,
    /// `||`
    LogicalOr,
    /// `&&&`: a set of values, by mask
    Mask,
    /// `..`: a set of values, from and to
    Range,
}
