package main

import (
	_ "embed"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/fakes"
	"github.com/hako-run/hako/internal/fakes/jma"
	modelscript "github.com/hako-run/hako/internal/fakes/script"
)

// devScript is what the model of "hako dev chat" answers where no other script is given.
//
//go:embed chat_dev.yaml
var devScript string

// devPolicy asks before anything leaves for another service. In Slack one of the leads has to agree to messages.
const devPolicy = `version: 1
rules:
  - name: leads agree to messages
    action: ask
    tools: [send_slack_dm]
    frontends: [slack]
    approvers: {groups: [leads]}
    reason: {en: it writes to somebody, ja: 人にメッセージを送ります}
  - name: ask before writing elsewhere
    action: ask
    tools: [write_rows_to_google_sheet, send_slack_dm]
    reason: {en: it writes to another service, ja: 外部のサービスに書き込みます}
`

func (a *app) devChatCommand() *cobra.Command {
	var flags chatFlags
	path := ""
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with a stand-in for a model, without any account",
		Long: `Talk with a stand-in for a model, which answers from a script and uses the shipped tools on the stand-ins of "hako dev fakes": the
whole way of a conversation, with a policy that asks before something is written. Nothing leaves the machine, and nothing is kept.

--script takes another script: docs/fakes.md describes them.`,
		Example: `  hako dev chat
  echo 東京の天気は？ | hako dev chat`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			steps, err := a.devSteps(cmd, path)
			if err != nil {
				return err
			}
			return a.devChat(cmd, steps, flags)
		},
	}
	cmd.Flags().StringVar(&path, "script", "", "what the model answers, in YAML")
	flags.add(a, cmd)
	return cmd
}

// devSteps reads what the model answers, from a file if path names one.
func (a *app) devSteps(cmd *cobra.Command, path string) (*modelscript.Script, error) {
	text := devScript
	if path != "" {
		data, err := os.ReadFile(a.path(path))
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	steps, err := parseSteps(text)
	if err != nil {
		return nil, usageError(cmd, err)
	}
	return steps, nil
}

// parseSteps reads a script, in which some words in capitals stand for what the stand-ins know.
func parseSteps(text string) (*modelscript.Script, error) {
	japanese, english := devPlaces()
	known := strings.NewReplacer("SPREADSHEET", fakes.Spreadsheet, "PERSON", fakes.SlackUser, "PLACES_JA", japanese,
		"PLACES_EN", english)
	return modelscript.Parse([]byte(known.Replace(text)))
}

// devPlaces returns regular expressions for the places that the stand-in for JMA has forecasts for, in both languages.
func devPlaces() (japanese, english string) {
	ja, en := []string{"北海道"}, []string{"Hokkaido"}
	for _, name := range jma.Places() {
		name, _, _ = strings.Cut(name, "（")
		name, _, _ = strings.Cut(name, " (")
		if name[0] < utf8.RuneSelf {
			en = append(en, regexp.QuoteMeta(name))
			continue
		}
		ja = append(ja, regexp.QuoteMeta(shortPlace(name)))
	}
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	slices.SortStableFunc(ja, longestFirst)
	slices.SortStableFunc(en, longestFirst)
	return strings.Join(ja, "|"), strings.Join(en, "|")
}

// shortPlace returns a name as people say it: without the kind of a prefecture, and with that of a city where one
// character is left, which many other names contain.
func shortPlace(name string) string {
	runes := []rune(name)
	switch last := runes[len(runes)-1]; {
	case len(runes) == 1:
		return name + "市"
	case len(runes) > 2 && strings.ContainsRune("県都府", last):
		return string(runes[:len(runes)-1])
	}
	return name
}

// devChat talks with a model that follows the script.
func (a *app) devChat(cmd *cobra.Command, steps *modelscript.Script, flags chatFlags) error {
	flags.fleeting = true
	return a.onFakes(cmd, steps, "",
		func(c *config.Config, _ *fakes.Fakes, _ string) error { return a.chat(cmd.Context(), c, flags) })
}

// onFakes calls use with the stand-ins, whose models follow the script, and a configuration for them, to which more is
// added. URL in it stands for theirs. What they need is in a directory that is removed at the end.
func (a *app) onFakes(cmd *cobra.Command, steps *modelscript.Script, more string,
	use func(c *config.Config, f *fakes.Fakes, url string) error) (err error) {
	dir, err := os.MkdirTemp("", "hako-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := fakes.New()
	f.Anthropic.Script, f.OpenAI.Script = steps, steps
	server := &http.Server{Handler: f, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	defer func() {
		err = errors.Join(err, server.Close())
		<-served
	}()
	url := "http://" + listener.Addr().String()
	c, err := a.devConfig(cmd, f, dir, url, strings.ReplaceAll(more, "URL", url))
	if err != nil {
		return err
	}
	return use(c, f, url)
}

// devConfig is a configuration for the stand-ins at url, with the files that it names in dir.
func (a *app) devConfig(cmd *cobra.Command, f *fakes.Fakes, dir, url, more string) (*config.Config, error) {
	text, err := f.WriteConfig(dir, url)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]string{"hako.yaml": text + more, "hako.policy.yaml": devPolicy, "slack-app.token": fakes.SlackAppToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	c, err := config.Load(config.Source{Dir: a.dir, File: filepath.Join(dir, "hako.yaml"), Flags: cmd.Flags()})
	if err != nil {
		return nil, err
	}
	c.Mock = false // recordings would come before the stand-ins
	return c, nil
}
