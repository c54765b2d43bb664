//! What common programs print when a login is missing.

use super::compile;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(super) struct Known {
    pub(super) name: &'static str,
    /// The names of its programs.
    pub(super) programs: &'static [&'static str],
    /// A regular expression for its messages.
    pattern: &'static str,
    pub(super) login: &'static str,
    pub(super) probe: Option<&'static str>,
    /// Example messages.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests check the patterns with them"))]
    pub(super) samples: &'static [&'static str],
}

impl Known {
    pub(super) fn shows(&self, line: &str) -> bool {
        static PATTERNS: LazyLock<BTreeMap<&str, Regex>> =
            LazyLock::new(|| TOOLS.iter().map(|tool| (tool.name, compile(tool.pattern).expect("a built-in pattern"))).collect());
        PATTERNS.get(self.name).is_some_and(|pattern| pattern.is_match(line))
    }
}

pub(super) static TOOLS: &[Known] = &[
    Known {
        name: "gh",
        programs: &["gh"],
        pattern: r"gh auth login|GH_TOKEN environment variable|HTTP 401|bad credentials|not logged in(to)? (any|github)",
        login: "gh auth login",
        probe: Some("gh auth status"),
        samples: &[
            "To get started with GitHub CLI, please run:  gh auth login",
            "gh: To use GitHub CLI in a GitHub Actions workflow, set the GH_TOKEN environment variable.",
            "HTTP 401: Bad credentials (https://api.github.com/graphql)",
        ],
    },
    Known {
        name: "git",
        programs: &["git"],
        pattern: r"could not read (username|password) for|authentication failed for|terminal prompts disabled|support for password authentication was removed|permission denied \(publickey|invalid username or (password|token)",
        login: "git credential approve, or `gh auth login`, or load your SSH key with `ssh-add`",
        // Without an origin there is nothing to probe, and the command itself is retried.
        probe: Some("git remote get-url origin >/dev/null 2>&1 || exit 0; git ls-remote --exit-code origin HEAD"),
        samples: &[
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            "fatal: Authentication failed for 'https://github.com/acme/app.git/'",
            "git@github.com: Permission denied (publickey).",
        ],
    },
    Known {
        name: "npm",
        programs: &["npm", "npx", "pnpm", "yarn"],
        pattern: r"\bENEEDAUTH\b|\bE401\b|need auth|requires you to be logged in|npm (login|adduser)\b|unable to authenticate",
        login: "npm login",
        probe: Some("npm whoami"),
        samples: &[
            "npm error code ENEEDAUTH",
            "npm ERR! code E401",
            "npm error need auth This command requires you to be logged in to https://registry.npmjs.org/",
        ],
    },
    Known {
        name: "docker",
        programs: &["docker", "podman", "buildah"],
        pattern: r"docker login|unauthorized: |denied: requested access to the resource is denied|no basic auth credentials|unauthorized to access repository",
        login: "docker login",
        probe: None,
        samples: &[
            "denied: requested access to the resource is denied",
            "no basic auth credentials",
            "Error response from daemon: pull access denied for acme/app, repository does not exist or may require 'docker login'",
        ],
    },
    Known {
        name: "aws",
        programs: &["aws", "cdk", "sam", "eksctl"],
        pattern: r"unable to locate credentials|the (security|sso) (token|session).{0,40}(expired|invalid)|ExpiredToken|InvalidClientTokenId|token has expired|aws (sso login|configure|login)|AuthFailure|UnrecognizedClientException",
        login: "aws sso login, or `aws configure`",
        probe: Some("aws sts get-caller-identity"),
        samples: &[
            "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
            "An error occurred (ExpiredToken) when calling the ListBuckets operation: The provided token has expired.",
        ],
    },
    Known {
        name: "gcloud",
        programs: &["gcloud", "gsutil", "bq"],
        pattern: r"gcloud auth (application-default )?login|do not currently have an active account|reauthentication (failed|required)|could not find default credentials|UNAUTHENTICATED",
        login: "gcloud auth login",
        probe: Some("gcloud auth print-access-token --quiet"),
        samples: &[
            "ERROR: (gcloud.run.deploy) You do not currently have an active account selected.",
            "Please run:  $ gcloud auth login",
        ],
    },
    Known {
        name: "az",
        programs: &["az", "azd"],
        pattern: r"az login|AADSTS\d+|no subscription found|interactive authentication is needed",
        login: "az login",
        probe: Some("az account show"),
        samples: &["Please run 'az login' to setup account.", "AADSTS700082: The refresh token has expired due to inactivity."],
    },
    Known {
        name: "vercel",
        programs: &["vercel", "vc"],
        pattern: r"vercel login|no existing credentials found|not authenticated|the specified token is not valid|not authorized",
        login: "vercel login",
        probe: Some("vercel whoami"),
        samples: &["Error: No existing credentials found. Please run `vercel login`", "Error: Not authenticated"],
    },
    Known {
        name: "kubectl",
        programs: &["kubectl", "helm", "k9s"],
        pattern: r"you must be logged in to the server|\(unauthorized\)|error: unauthorized|provide credentials|getting credentials: exec",
        login: "the login of your cluster (such as `gcloud container clusters get-credentials` or `aws eks update-kubeconfig`)",
        probe: Some("kubectl auth whoami"),
        samples: &[
            "error: You must be logged in to the server (Unauthorized)",
            "Unable to connect to the server: getting credentials: exec: executable aws failed with exit code 255",
        ],
    },
];
