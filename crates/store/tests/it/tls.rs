//! TLS to a real PostgreSQL server that takes nobody without it.

use crate::processes::block_on;
use lockgate_store::conformance::Scribe;
use lockgate_store::postgres::server::{PASSWORD, encrypted_server};
use lockgate_store::{PostgresStore, StoreError};
use std::io::{Read, Write};

/// Why a connection to the encrypted server fails.
fn refused(host: &str, parameters: &str) -> String {
    let error = PostgresStore::connect(&encrypted_server().database_at(host, parameters)).unwrap_err();
    assert!(matches!(error, StoreError::Io(_)), "{error:?}");
    let told = error.to_string();
    assert!(!told.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{told}");
    told
}

#[test]
fn connections_are_encrypted_in_every_mode_but_one() {
    let server = encrypted_server();
    let verified = format!("sslrootcert={}&sslmode", server.authority());
    let modes = ["", "sslmode=prefer", "sslmode=require", &format!("{verified}=verify-ca"), &format!("{verified}=verify-full")];
    for parameters in modes {
        let url = server.database_at("localhost", parameters);
        let store = PostgresStore::connect(&url).unwrap_or_else(|error| panic!("{parameters}: {error}"));
        block_on(Scribe::new("aaaa").write(&store, "one"));
        let encrypted = "DO $$ BEGIN IF (SELECT count(*) < 2 OR NOT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
             WHERE a.datname = current_database() AND a.application_name = 'lockgate') THEN RAISE 'not encrypted'; END IF; END $$";
        server.perform(&url, encrypted);
    }
}

#[test]
fn a_server_of_an_unknown_authority_is_refused() {
    let own = encrypted_server().authority().replace("ca.crt", "server.crt");
    for mode in ["verify-ca", "verify-full"] {
        let told = refused("localhost", &format!("sslmode={mode}"));
        assert!(told.contains("not trusted here") && told.contains("sslrootcert=FILE"), "{told}");
        // Its own certificate is as good as one of an authority.
        let url = encrypted_server().database_at("localhost", &format!("sslmode={mode}&sslrootcert={own}"));
        PostgresStore::connect(&url).unwrap();
    }
}

#[test]
fn a_certificate_for_another_host_is_refused_where_the_host_is_verified() {
    let authority = encrypted_server().authority();
    let told = refused("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={authority}"));
    assert!(told.contains("made for another host"), "{told}");
    for weaker in ["verify-ca", "require"] {
        let url = encrypted_server().database_at("127.0.0.1", &format!("sslmode={weaker}&sslrootcert={authority}"));
        PostgresStore::connect(&url).unwrap();
    }
}

#[test]
fn plain_connections_to_a_server_that_wants_tls_are_told_so() {
    let told = refused("localhost", "sslmode=disable");
    assert!(told.contains("without TLS") && told.contains("take sslmode=disable out"), "{told}");
}

#[test]
fn a_server_without_tls_is_told_where_it_is_asked_for() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // All that a server without TLS says to who asks for it.
    let says_no = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 8]).unwrap();
        connection.write_all(b"N").unwrap();
    });
    let url = format!("postgresql://ann:{PASSWORD}@127.0.0.1:{port}/work?sslmode=require");
    let told = PostgresStore::connect(&url).unwrap_err().to_string();
    assert!(told.contains("has no TLS") && told.contains("sslmode=disable") && !told.contains(PASSWORD), "{told}");
    says_no.join().unwrap();
}

#[test]
fn a_wrong_password_is_told_without_showing_one() {
    let url = encrypted_server().database_at("localhost", "sslmode=require").replace(PASSWORD, "wr0ng");
    let told = PostgresStore::connect(&url).unwrap_err().to_string();
    assert!(told.contains("refuses the user") && !told.contains("wr0ng"), "{told}");
}
