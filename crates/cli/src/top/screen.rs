//! The table on a terminal.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};

use super::{HEADINGS, IS_FIGURE, Order, Row};

/// What a key says.
pub(super) enum Key {
    Quit,
    Sort(Order),
}

/// The terminal; as it was before when this is dropped.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        ratatui::try_init().map(Screen)
    }

    pub(super) fn show(&mut self, rows: &[Row<'_>], order: Order, notice: &str) -> io::Result<()> {
        let cells: Vec<[String; 8]> = rows.iter().map(Row::cells).collect();
        let width = |column: usize| {
            let widest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            Constraint::Length(widest.max(HEADINGS[column].len()) as u16)
        };
        let widths: Vec<Constraint> = (0..HEADINGS.len()).map(width).collect();
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let heading = TableRow::new(HEADINGS.into_iter().zip(IS_FIGURE).map(cell)).style(bold);
        let lines = cells.into_iter().map(|row| TableRow::new(row.into_iter().zip(IS_FIGURE).map(cell)));
        let table = Table::new(lines, widths).header(heading).column_spacing(2);
        let keys = format!("sorted by {order:?}; n r a l b sort, q quits").to_lowercase();
        self.0.draw(|frame| {
            let parts = Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(1)]);
            let [above, middle, below] = parts.areas(frame.area());
            match rows.is_empty() {
                true => frame.render_widget(Paragraph::new("no topic yet"), above),
                false => frame.render_widget(table, above),
            }
            frame.render_widget(Paragraph::new(notice), middle);
            frame.render_widget(Paragraph::new(keys), below);
        })?;
        Ok(())
    }

    /// Waits up to `patience` for a key.
    pub(super) fn key(&mut self, patience: Duration) -> io::Result<Option<Key>> {
        let ready = match event::poll(patience) {
            // A signal: the caller knows which.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
            ready => ready?,
        };
        if !ready {
            return Ok(None);
        }
        let Event::Key(KeyEvent { code, modifiers, .. }) = event::read()? else { return Ok(None) };
        Ok(match code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
            // In raw mode it is no signal.
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
            KeyCode::Char('n') => Some(Key::Sort(Order::Name)),
            KeyCode::Char('r') => Some(Key::Sort(Order::Rate)),
            KeyCode::Char('a') => Some(Key::Sort(Order::Age)),
            KeyCode::Char('l') => Some(Key::Sort(Order::Loss)),
            KeyCode::Char('b') => Some(Key::Sort(Order::Bytes)),
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn cell((text, is_figure): (impl Into<String>, bool)) -> Cell<'static> {
    let alignment = if is_figure { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text.into()).alignment(alignment))
}
