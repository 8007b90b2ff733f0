//! The PTX front end.
