# One line each; `make ci` is all that must hold before a change lands.
.PHONY: fmt lint test contracts demo ci

fmt:        ; cargo fmt --all
lint:       ; cargo clippy --workspace --all-targets -- -D warnings
test:       ; cargo test --workspace
contracts:  ; REMIT_REGENERATE=1 cargo test --workspace prompts contracts
demo:       ; cargo run --release -- demo
ci:         ; .ci/run
