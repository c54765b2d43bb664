//! The subset of HTTP/1.1 that the agent programs use: one request per connection, with a length or in chunks.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::TcpStream;

pub(super) struct Request {
    /// The path, including the query.
    pub(super) path: String,
    /// The headers in lower case.
    pub(super) headers: String,
    pub(super) body: Vec<u8>,
}

pub(super) fn read(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut headers, mut length, mut chunked) = (String::new(), 0, false);
    loop {
        let header = line(&mut reader)?.to_ascii_lowercase();
        headers = headers + &header + "\n";
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().map_err(Error::other)?,
            Some(("transfer-encoding", value)) => chunked = value.trim() == "chunked",
            Some(("expect", _)) => (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = usize::from_str_radix(line(&mut reader)?.trim(), 16).map_err(Error::other)?;
            (&mut reader).take(size as u64).read_to_end(&mut body)?;
            line(&mut reader)?;
            if size == 0 {
                break;
            }
        }
    } else {
        reader.take(length).read_to_end(&mut body)?;
    }
    Ok(Request { path, headers, body })
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

pub(super) fn respond(mut stream: &TcpStream, status: u64, content_type: &str, body: &str) -> Result<()> {
    let head = format!(
        "HTTP/1.1 {status} Stub\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Blocks until the client closes the connection.
pub(super) fn until_closed(mut stream: &TcpStream) -> Result<()> {
    let mut rest = [0; 512];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
