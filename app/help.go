package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// help shows a command with the flags that it has a use for: those of the service
// are about fifty.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	var uses []string
	switch command := ctx.Command(); {
	case strings.HasPrefix(command, "operator"):
		uses = []string{"db", "migrate", "config"}
	case strings.HasPrefix(command, "migrate"):
		uses = []string{"db", "stock-db", "config"}
	case strings.HasPrefix(command, "verify"):
		uses = []string{"db", "stock-db", "redis", "queue", "mode", "enqueue", "config"}
	default:
		return kong.DefaultHelpPrinter(options, ctx)
	}
	for _, f := range ctx.Model.Flags {
		if f.Name != "help" && !slices.Contains(uses, f.Name) {
			f.Hidden = true
		}
	}
	return kong.DefaultHelpPrinter(options, ctx)
}
