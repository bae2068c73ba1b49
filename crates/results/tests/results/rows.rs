//! Tidy tables: the same cells in every form.
use narrows_results::Datum;
use narrows_results::rows::{Column, Format, Rows};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

fn table() -> Rows {
    let column = |name: &str, whole| Column { name: name.to_owned(), whole };
    let number = |n: f64| Some(Datum::Number(n));
    let text = |t: &str| Some(Datum::Text(t.to_owned()));
    Rows {
        columns: vec![
            column("run", true),
            column("queue", false),
            column("rtt_ms.p99", false),
            column("odd \"name\"", false),
        ],
        rows: vec![
            vec![number(1.0), text("fq_codel:target=3ms,ecn=false"), number(0.1 + 0.2), number(1e-9)],
            vec![number(2.0), text("a\nb"), None, text("auto")],
        ],
    }
}

fn text(format: Format) -> String {
    String::from_utf8(table().bytes(format).expect("it is written")).expect("text")
}

#[test]
fn csv_quotes_what_it_must() {
    assert_eq!(
        text(Format::Csv),
        "run,queue,rtt_ms.p99,\"odd \"\"name\"\"\"\n1,\"fq_codel:target=3ms,ecn=false\",0.30000000000000004,0.000000001\n2,\"a\nb\",,auto\n"
    );
}

#[test]
fn json_lines_keep_the_columns_order_and_every_digit() {
    assert_eq!(
        text(Format::JsonLines),
        "{\"run\":1,\"queue\":\"fq_codel:target=3ms,ecn=false\",\"rtt_ms.p99\":0.30000000000000004,\"odd \\\"name\\\"\":\"0.000000001\"}\n\
         {\"run\":2,\"queue\":\"a\\nb\",\"rtt_ms.p99\":null,\"odd \\\"name\\\"\":\"auto\"}\n"
    );
}

#[test]
fn parquet_has_the_same_cells() {
    let path = std::env::temp_dir().join(format!("narrows-rows-{}.parquet", std::process::id()));
    std::fs::write(&path, table().bytes(Format::Parquet).expect("it is written")).expect("a file");
    let reader = SerializedFileReader::new(std::fs::File::open(&path).expect("the file")).expect("Parquet");
    let rows: Vec<Vec<(String, Field)>> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row").get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect())
        .collect();
    std::fs::remove_file(&path).expect("the file");
    let cell = |row: usize, column: usize| rows[row][column].clone();
    assert_eq!(cell(0, 0), ("run".to_owned(), Field::Long(1)));
    assert_eq!(cell(0, 2), ("rtt_ms.p99".to_owned(), Field::Double(0.1 + 0.2)));
    assert_eq!(cell(1, 2).1, Field::Null);
    assert_eq!(cell(1, 1).1, Field::Str("a\nb".to_owned()));
    assert_eq!(cell(0, 3).1, Field::Str("0.000000001".to_owned()), "a column with a word is text");
}
