//! TLS to a real PostgreSQL server that requires it.

use crate::processes::block_on;
use lockgate_store::conformance::HistoryWriter;
use lockgate_store::postgres::test_server::{PASSWORD, encrypted_server};
use lockgate_store::{PostgresStore, StoreError};
use std::io::{Read, Write};

fn refused(host: &str, parameters: &str) -> String {
    let error = PostgresStore::connect(&encrypted_server().database_at(host, parameters)).unwrap_err();
    assert!(matches!(error, StoreError::Io(_)), "{error:?}");
    let reported = error.to_string();
    assert!(!reported.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{reported}");
    reported
}

#[test]
fn connections_are_encrypted_unless_disabled() {
    let server = encrypted_server();
    let verified = format!("sslrootcert={}&sslmode", server.authority());
    let modes = ["", "sslmode=prefer", "sslmode=require", &format!("{verified}=verify-ca"), &format!("{verified}=verify-full")];
    for parameters in modes {
        let url = server.database_at("localhost", parameters);
        let store = PostgresStore::connect(&url).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        block_on(HistoryWriter::new("aaaa").write(&store, "one"));
        let encrypted = "DO $$ BEGIN IF (SELECT count(*) < 2 OR NOT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
             WHERE a.datname = current_database() AND a.application_name = 'lockgate') THEN RAISE 'not encrypted'; END IF; END $$";
        server.perform(&url, encrypted);
    }
}

#[test]
fn a_server_of_an_unknown_authority_is_refused() {
    let own = encrypted_server().authority().replace("ca.crt", "server.crt");
    for mode in ["verify-ca", "verify-full"] {
        let reported = refused("localhost", &format!("sslmode={mode}"));
        assert!(reported.contains("an untrusted authority") && reported.contains("sslrootcert=FILE"), "{reported}");
        // Its own certificate is accepted like that of an authority.
        let url = encrypted_server().database_at("localhost", &format!("sslmode={mode}&sslrootcert={own}"));
        PostgresStore::connect(&url).unwrap();
    }
}

#[test]
fn a_certificate_for_another_host_is_refused_where_the_host_is_verified() {
    let authority = encrypted_server().authority();
    let reported = refused("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={authority}"));
    assert!(reported.contains("for another host"), "{reported}");
    for weaker in ["verify-ca", "require"] {
        let url = encrypted_server().database_at("127.0.0.1", &format!("sslmode={weaker}&sslrootcert={authority}"));
        PostgresStore::connect(&url).unwrap();
    }
}

#[test]
fn an_unencrypted_connection_to_a_tls_only_server_is_reported() {
    let reported = refused("localhost", "sslmode=disable");
    assert!(reported.contains("without TLS") && reported.contains("remove sslmode=disable"), "{reported}");
}

#[test]
fn a_server_without_tls_is_reported_if_tls_is_required() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // How a server without TLS declines it.
    let says_no = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 8]).unwrap();
        connection.write_all(b"N").unwrap();
    });
    let url = format!("postgresql://ann:{PASSWORD}@127.0.0.1:{port}/work?sslmode=require");
    let reported = PostgresStore::connect(&url).unwrap_err().to_string();
    assert!(
        reported.contains("has no TLS") && reported.contains("sslmode=disable") && !reported.contains(PASSWORD),
        "{reported}"
    );
    says_no.join().unwrap();
}

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    let url = encrypted_server().database_at("localhost", "sslmode=require").replace(PASSWORD, "wr0ng");
    let reported = PostgresStore::connect(&url).unwrap_err().to_string();
    assert!(reported.contains("refuses the user") && !reported.contains("wr0ng"), "{reported}");
}
