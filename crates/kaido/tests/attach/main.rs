//! `kaido p4 attach`: programs between interfaces and their users.

mod bad_input;
mod bed;
mod beside;
mod between;
mod ending;
mod hostile;
mod hysteresis;
mod judging;
mod kinds;
mod page;
mod streams;
