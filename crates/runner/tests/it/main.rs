//! Tests of the runner from outside, against real folders.

mod files;
