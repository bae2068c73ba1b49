//! The fenced blocks of a Markdown page, with their places.
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::ops::Range;

/// A fenced block.
pub(super) struct Block {
    /// The line of the page on which it begins.
    pub(super) line: usize,
    /// The first word of the info string.
    pub(super) language: String,
    /// The other words: `exit=2`, or a bare word with an empty value.
    pub(super) options: BTreeMap<String, String>,
    /// The text between the fences, without the indentation of a list around it.
    pub(super) text: String,
    /// The position of that text on the page.
    pub(super) body: Range<usize>,
    /// The instructions in comments above it: `not run`, `slowly`, `first`, `beside`, each with its text.
    pub(super) comments: Vec<(String, String)>,
}

impl Block {
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// The text after `word:` in a comment above the block.
    pub(super) fn comment(&self, word: &str) -> Option<&str> {
        self.comments.iter().find(|(first, _)| first == word).map(|(_, text)| text.as_str())
    }
}

/// All fenced blocks, from top to bottom.
pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut comments, mut open) = (Vec::new(), None::<Block>);
    for (event, place) in Parser::new(page).into_offset_iter() {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => comments.extend(instruction(&html)),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let mut words = info.split_whitespace();
                let language = words.next().unwrap_or_default().to_string();
                let options = words.map(|word| word.split_once('=').unwrap_or((word, "")));
                let options = options.map(|(name, value)| (name.to_string(), value.to_string())).collect();
                let line = page[..place.start].lines().count() + 1;
                let start = place.start + page[place.start..].find('\n').map_or(0, |end| end + 1);
                let text = String::new();
                let comments = std::mem::take(&mut comments);
                open = Some(Block { line, language, options, text, body: start..start, comments });
            }
            Event::Text(text) => match &mut open {
                Some(block) => {
                    block.text += &text;
                    block.body.end = place.end;
                }
                None => comments.clear(),
            },
            Event::End(TagEnd::CodeBlock) => found.extend(open.take()),
            _ => {}
        }
    }
    found
}

/// `<!-- slowly: 2 minutes -->` is `("slowly", "2 minutes")`.
fn instruction(html: &str) -> Option<(String, String)> {
    let text = html.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    let (word, why) = text.split_once(':')?;
    Some((word.trim().to_string(), why.trim().to_string()))
}

#[test]
fn blocks_have_their_place_their_words_and_the_comment_above() {
    let page = "text\n\n<!-- not run: needs a network -->\n```sh needs=curl exit=2\ncurl\n```\n\n- list\n\n  ```text\n  a\n    b\n  ```\n";
    let [first, second] = &blocks(page)[..] else { panic!("two blocks") };
    assert_eq!((first.line, first.language.as_str(), first.text.as_str()), (4, "sh", "curl\n"));
    assert_eq!((first.option("needs"), first.option("exit"), first.option("figures")), (Some("curl"), Some("2"), None));
    assert_eq!(first.comment("not run"), Some("needs a network"));
    assert_eq!(&page[first.body.clone()], "curl\n");
    assert_eq!((second.line, second.text.as_str(), second.comments.len()), (11, "a\n  b\n", 0));
}
