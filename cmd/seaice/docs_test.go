package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seaice/seaice/internal/clock"
)

// TestCommandsGolden keeps docs/cli.md what the commands say of themselves:
// SEAICE_GOLDEN=rewrite go test -run Golden ./cmd/seaice writes it anew.
func TestCommandsGolden(t *testing.T) {
	c := newCLI(strings.NewReader(""), nil, nil, clock.NewVirtual(time.Unix(0, 0)))
	root := c.root()
	var b strings.Builder
	b.WriteString("# Command line\n\nThis page is generated from the commands; `SEAICE_GOLDEN=rewrite go test -run Golden ./cmd/seaice` writes it anew.\n\n")
	b.WriteString(root.Long + "\n\nFlags of every command:\n\n" + indented(root.PersistentFlags().FlagUsages()))
	describe(&b, root)
	goldenFile(t, "../../docs/cli.md", b.String())
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.HasSubCommands() {
			describe(b, sub)
			continue
		}
		about := sub.Long
		if about == "" {
			about = sub.Short + "."
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n%s", sub.CommandPath(), indented(sub.UseLine()), about)
		if flags := sub.LocalFlags().FlagUsages(); flags != "" {
			b.WriteString("\n\n" + strings.TrimRight(indented(flags), "\n"))
		}
		b.WriteString("\n")
	}
}

// indented makes text verbatim.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight("    "+lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}
