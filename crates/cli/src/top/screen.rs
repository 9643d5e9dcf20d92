//! The table on a terminal.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};
use ratatui::{DefaultTerminal, Frame};

use super::{HEADINGS, IS_FIGURE, Order, Row};

/// Action of a key.
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
        self.0.draw(|frame| paint(frame, rows, order, notice))?;
        Ok(())
    }

    /// Waits up to `timeout` for a key.
    pub(super) fn key(&mut self, timeout: Duration) -> io::Result<Option<Key>> {
        let ready = match event::poll(timeout) {
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

fn paint(frame: &mut Frame<'_>, rows: &[Row<'_>], order: Order, notice: &str) {
    let cells: Vec<[String; 8]> = rows.iter().map(Row::cells).collect();
    let width = |column: usize| {
        let widest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        Constraint::Length(u16::try_from(widest.max(HEADINGS[column].len())).unwrap_or(u16::MAX))
    };
    let widths: Vec<Constraint> = (0..HEADINGS.len()).map(width).collect();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let heading = TableRow::new(HEADINGS.into_iter().zip(IS_FIGURE).map(cell)).style(bold);
    let lines = cells.into_iter().map(|row| TableRow::new(row.into_iter().zip(IS_FIGURE).map(cell)));
    let table = Table::new(lines, widths).header(heading).column_spacing(2);
    let keys = format!("sorted by {order:?}; n r a l b sort, q quits").to_lowercase();
    let parts = Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(1)]);
    let [above, middle, below] = parts.areas(frame.area());
    match rows.is_empty() {
        true => frame.render_widget(Paragraph::new("no topic yet"), above),
        false => frame.render_widget(table, above),
    }
    frame.render_widget(Paragraph::new(notice), middle);
    frame.render_widget(Paragraph::new(keys), below);
}

fn cell((text, is_figure): (impl Into<String>, bool)) -> Cell<'static> {
    let alignment = if is_figure { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text.into()).alignment(alignment))
}

#[cfg(test)]
mod tests {
    use noctule::{StatisticsWindow, WindowStatistics};
    use noctule_timebase::{Instant, Span};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::Ends;
    use super::*;

    fn lines(width: u16, height: u16, window: &WindowStatistics) -> Vec<String> {
        let ends = Ends { writers: 2, readers: 1, type_name: "sensor/Imu".into() };
        let rows = [Row { topic: "imu\u{1b}[2J", ends: &ends, window }];
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| paint(frame, &rows, Order::Rate, "topic imu: a notice")).unwrap();
        let cells = terminal.backend().buffer().content().chunks(usize::from(width));
        cells.map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn the_table_has_a_row_per_topic_and_the_notice_below() {
        let nothing =
            StatisticsWindow::new(Span::from_s(30), Instant::from_ns(0)).window(Instant::from_ns(1));
        let lines = lines(120, 6, &nothing);
        assert!(lines[0].starts_with("topic ") && lines[0].contains("age p99"), "{lines:#?}");
        assert!(lines[1].starts_with("imu\\u{1b}[2J ") && lines[1].contains("2/1"), "{lines:#?}");
        assert!(
            lines[4].starts_with("topic imu: a notice") && lines[5].contains("sorted by rate"),
            "{lines:#?}"
        );
    }

    #[test]
    fn a_terminal_of_any_size_will_do() {
        let nothing =
            StatisticsWindow::new(Span::from_s(30), Instant::from_ns(0)).window(Instant::from_ns(1));
        for (width, height) in [(1, 1), (20, 3), (40, 2), (500, 200)] {
            assert_eq!(lines(width, height, &nothing).len(), usize::from(height));
        }
    }
}
