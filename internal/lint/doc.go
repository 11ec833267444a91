// Package lint holds the bans that no linter can express, as tests over the
// project's own files. Each message says what to do instead. The import rules
// and the other bans are in .golangci.yml.
package lint
