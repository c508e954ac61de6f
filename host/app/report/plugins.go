package report

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/clip"
)

// maxSigner is the longest name of a signer in a table, in characters.
const maxSigner = 40

// Plugins prints a line for each plugin.
func Plugins(out io.Writer, list []host.Status, signers inspect.Signers) error {
	return printTable(out, "", list, func(p host.Status) []any {
		return []any{p.Title(), p.Version, p.State, clip.Runes(signers.Text(&p), maxSigner),
			strings.Join(p.Tools, ", ")}
	})
}

// Remedies prints what is to be done about plugins that are not in service, and warnings about those that are.
func Remedies(out io.Writer, list []host.Status) {
	for _, p := range list {
		if note := inspect.Remedy(p); note != "" {
			terminal.Printf(out, "%s\n", note)
		}
	}
}

// Tools prints a line for each tool.
func Tools(out io.Writer, list []inspect.ToolInfo) error {
	return printTable(out, "", list, func(t inspect.ToolInfo) []any {
		return []any{t.Name, t.Plugin, terminal.Summary(t.Description)}
	})
}

// ToolTokens prints about how much of a model's context each tool takes, the largest first, and what all take together.
func ToolTokens(out io.Writer, list []inspect.ToolInfo) error {
	list, total := slices.Clone(list), 0
	slices.SortStableFunc(list, func(a, b inspect.ToolInfo) int { return b.Tokens() - a.Tokens() })
	for i := range list {
		total += list[i].Tokens()
	}
	err := printTable(out, "NAME\tPLUGIN\tTOKENS", list, func(t inspect.ToolInfo) []any {
		return []any{t.Name, t.Plugin, t.Tokens()}
	})
	return errors.Join(err, terminal.Printf(out, "\n%s, about %d tokens of a model's context\n",
		terminal.Count(len(list), "tool"), total))
}

var toolsHeading = manifest.Text{"en": "Available tools:", "ja": "利用可能なツール:"}

// ToolText prints tools for the prompt of a model, each on one line, whatever is in its description.
func ToolText(out io.Writer, locale string, list []inspect.ToolInfo) error {
	err := terminal.Printf(out, "%s\n", toolsHeading.In(locale))
	for _, t := range list {
		err = terminal.Printf(out, "- %s: %s\n", t.Name,
			terminal.Sentence(strings.Join(strings.Fields(t.Description), " ")))
	}
	return err
}

// Upstreams prints a line for each upstream server, and to notes what is left out.
func Upstreams(out, notes io.Writer, list []inspect.Upstream) error {
	heading := "NAME\tSTATE\tTRANSPORT\tPREFIX\tTOOLS\tPROMPTS\tRESOURCES\tPROTOCOL\tSERVER"
	serving := slices.ContainsFunc(list, func(s inspect.Upstream) bool { return s.Serving != nil })
	if serving {
		heading += "\tIN HAKO SERVE"
	}
	err := printTable(out, heading, list, func(s inspect.Upstream) []any {
		row := []any{s.Name, s.State, s.Transport, s.Prefix, s.Tools, s.Prompts, s.Resources, s.Protocol,
			dash(strings.TrimSpace(s.Server + " " + s.Version))}
		switch {
		case s.Serving != nil:
			return append(row, fmt.Sprintf("%s since %s", s.Serving.State, moment(s.Serving.Since)))
		case serving:
			return append(row, "-")
		}
		return row
	})
	for _, s := range list {
		for _, what := range s.Omitted {
			terminal.Printf(notes, "%s: left out: %s\n", s.Name, what)
		}
	}
	return err
}

// MissingUpstreams reports upstream servers that are down or slow.
func MissingUpstreams(notes io.Writer, list []mcpclient.Status) {
	for _, s := range list {
		switch {
		case s.State == mcpclient.Down:
			terminal.Printf(notes, "down: upstream server %s: %s\n", s.Name, s.Error)
		case s.State == mcpclient.Connecting && !s.Listed:
			terminal.Printf(notes,
				"missing: upstream server %s: it is still being connected, and its tools are not known yet. "+
					"'hako upstreams' waits for it\n", s.Name)
		}
	}
}

// Plugin prints what a plugin is, asks for and may do.
func Plugin(out io.Writer, r *inspect.Report) error {
	var rows [][]any
	row := func(key string, values ...string) {
		for _, value := range values {
			rows = append(rows, []any{key, value})
			key = ""
		}
	}
	row("name", r.Name+" "+r.Version)
	row("description", strings.Split(strings.TrimSpace(r.Description), "\n")...)
	row("licence", r.License)
	row("file", r.Path)
	row("digest", r.Digest)
	if r.Signer != "" {
		row("signature", r.Signer)
	}
	row("state", strings.TrimPrefix(strings.TrimSuffix(string(r.State)+": "+r.Reason, ": "), ": "))
	row("offers", r.Offers...)
	row("is no tool", r.NoTools...)
	row("imports", r.Imports...)
	row("asks for", r.Permissions...)
	if r.Serving != "" {
		row("may do", r.Given...)
	}
	var keys, limits []string
	for _, k := range r.Config {
		keys = append(keys, configKey(k))
	}
	row("configuration", keys...)
	for _, key := range slices.Sorted(maps.Keys(r.Limits)) {
		limits = append(limits, key+" "+r.Limits[key])
	}
	row("limits", strings.Join(limits, ", "))
	return printTable(out, "", rows, func(row []any) []any { return row })
}

func configKey(k inspect.ConfigKey) string {
	text := k.Key + " (" + k.Type
	switch {
	case k.Required:
		text += ", required"
	case k.Default != nil:
		text += fmt.Sprintf(", default %v", k.Default)
	}
	return strings.TrimSuffix(text+"): "+k.Description, ": ")
}

// Configuration prints the effective values of a configuration, and the grants of the plugins in service.
func Configuration(out io.Writer, c *config.Config, plugins []host.Status) error {
	terminal.Printf(out, "# %s\n", c.Name())
	err := printTable(out, "", c.Entries(), func(e config.Entry) []any { return []any{e.Key, dash(e.Value), e.Origin} })
	terminal.Printf(out, "\n# What the plugins in service may do\n")
	for _, p := range plugins {
		if p.Serving == "" {
			continue
		}
		terminal.Printf(out, "%s\n", p.Name)
		for _, line := range p.Grants.Explain(c.Locale) {
			terminal.Printf(out, "  %s\n", line)
		}
	}
	return err
}
