//! The command line as people and scripts use it: the real program in a folder of its own, judged by stdout, stderr and exit code.

mod answered;
mod answers;
mod checkpoints;
mod daily;
mod detached;
mod ending;
mod explain;
mod guiding;
mod hostile;
mod kills;
mod leftovers;
mod live;
mod looking;
mod masking;
mod postgres;
mod project;
mod prompt;
mod reading;
mod screen;
mod seen;
mod self_approval;
mod shape;
mod stores;
mod tools;
mod trouble;
mod watching;
