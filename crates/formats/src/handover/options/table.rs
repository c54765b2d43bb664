//! Options in a Markdown table.

use super::Found;
use super::label::{Label, Side, bare, is_id, label};
use crate::completed_tasks::{cells, is_rule};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Id,
    Option,
    Description,
    Side(Side),
    Other,
}

impl Column {
    fn of(name: &str) -> Self {
        match bare(name).to_lowercase().as_str() {
            "id" | "option id" | "option-id" | "#" | "key" => Self::Id,
            "option" | "options" | "choice" | "alternative" | "name" | "title" => Self::Option,
            "description" | "approach" | "what" | "details" | "summary" | "meaning" => Self::Description,
            other => Side::of_column(other).map_or(Self::Other, Self::Side),
        }
    }
}

/// The options of the first table that lists options. Below a heading such as "Options", every table does.
pub(super) fn read(lines: &[&str], marked: bool) -> Vec<Found> {
    let mut tables = tables(lines);
    let table = tables.find(|rows| is_options(rows, marked));
    table.map(|rows| options(&rows)).unwrap_or_default()
}

fn tables<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = Vec<Vec<String>>> + 'a {
    let is_row = |line: &&str| line.trim_start().starts_with('|');
    lines
        .chunk_by(move |before, after| is_row(before) == is_row(after))
        .filter(move |chunk| chunk.first().is_some_and(is_row))
        .map(|chunk| chunk.iter().map(|line| cells(line.trim())).collect())
}

fn is_options(rows: &[Vec<String>], marked: bool) -> bool {
    let Some(header) = rows.first() else { return false };
    let columns: Vec<Column> = header.iter().map(|cell| Column::of(cell)).collect();
    let named =
        header.iter().any(|cell| matches!(bare(cell).to_lowercase().as_str(), "option" | "options" | "choice" | "option id"));
    let sided = columns.iter().any(|column| matches!(column, Column::Side(_)));
    rows.len() > 1 && (marked || named || sided)
}

fn options(rows: &[Vec<String>]) -> Vec<Found> {
    let Some((header, rows)) = rows.split_first() else { return Vec::new() };
    let mut columns: Vec<Column> = header.iter().map(|cell| Column::of(cell)).collect();
    if !columns.iter().any(|column| matches!(column, Column::Id | Column::Option)) {
        let first = columns.iter().position(|column| matches!(column, Column::Other | Column::Description));
        if let Some(column) = first.and_then(|first| columns.get_mut(first)) {
            *column = Column::Option;
        }
    }
    let cell = |row: &[String], wanted: Column| {
        let at = columns.iter().position(|column| *column == wanted)?;
        row.get(at).map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).map(str::to_owned)
    };
    let rows = rows.iter().filter(|row| !is_rule(row));
    rows.filter_map(|row| {
        let side = |side| cell(row, Column::Side(side)).map(|text| bare(&text));
        let called = called(cell(row, Column::Id), cell(row, Column::Option), cell(row, Column::Description))?;
        Some(Found { label: called, pros: side(Side::Pros), cons: side(Side::Cons) })
    })
    .collect()
}

fn called(id: Option<String>, option: Option<String>, description: Option<String>) -> Option<Label> {
    if let Some(id) = id {
        let given = label(&id);
        let id = given.id.or_else(|| Some(bare(&id)).filter(|id| is_id(id)));
        let name = option.or(description).map_or(given.name, |name| bare(&name));
        return Some(Label { id, name, certain: true });
    }
    let called = label(&option?);
    // A cell with one word is an id; the next column describes it.
    let is_word = called.id.as_ref().is_some_and(|id| *id == called.name || called.name.to_lowercase().replace(' ', "-") == *id);
    match description {
        Some(description) if is_word => Some(Label { name: bare(&description), ..called }),
        Some(_) | None => Some(called),
    }
}
