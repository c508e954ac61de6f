// Package demo has what it takes to run hako on fakes of all services, without accounts: a configuration for dev/fakes with
// models that follow a script.
//
// Start serves the fakes and writes a configuration for them into a temporary directory; hako runs as a process of its
// own. ParseScript parses what the models
// answer.
package demo

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

	"github.com/hako-run/hako/dev/fakes"
	"github.com/hako-run/hako/dev/fakes/jma"
	modelscript "github.com/hako-run/hako/dev/fakes/script"
	"github.com/hako-run/hako/internal/scratch"
)

// Script holds the answers of the models if no other script is given.
//
//go:embed script.yaml
var Script string

// Policy asks before anything is written to another service. In Slack one of the leads has to agree to messages.
const Policy = `version: 1
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

// SlackWorkspace configures the bot in the fake at URL.
const SlackWorkspace = `
slack:
  workspaces:
    - name: main
      botToken: {file: slack.token}
      appToken: {file: slack-app.token}
      apiUrl: URL/slack/api/
`

// Quiet has hako log errors alone, and start without a greeting.
const Quiet = `
log: {level: error}
`

// Demo is a set of fakes that are served on this machine. Start returns one.
type Demo struct {
	// Config is the path of a configuration file for hako.
	Config string
	Fakes  *fakes.Fakes
	// URL is the base URL of the fakes.
	URL string

	dir    *scratch.Dir
	server *http.Server
	served chan struct{}
}

// Start serves the fakes, whose models follow the script, and writes a configuration for them to which more is added;
// URL in more stands for the URL of the fakes. The caller closes the Demo.
func Start(script *modelscript.Script, more string) (_ *Demo, err error) {
	d := &Demo{Fakes: fakes.New(), served: make(chan struct{})}
	d.Fakes.Anthropic.Script, d.Fakes.OpenAI.Script = script, script
	if d.dir, err = scratch.New("", "hako-dev"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, d.dir.Remove())
	}
	d.URL = "http://" + listener.Addr().String()
	d.server = &http.Server{Handler: d.Fakes, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(d.served)
		_ = d.server.Serve(listener) // until Close
	}()
	if err := d.configure(strings.ReplaceAll(more, "URL", d.URL)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// configure writes the configuration and the files that it names.
func (d *Demo) configure(more string) error {
	text, err := d.Fakes.WriteConfig(d.dir.Path, d.URL)
	if err != nil {
		return err
	}
	d.Config = filepath.Join(d.dir.Path, "hako.yaml")
	for name, content := range map[string]string{
		"hako.yaml": text + more, "hako.policy.yaml": Policy, "slack-app.token": fakes.SlackAppToken,
	} {
		if err := os.WriteFile(filepath.Join(d.dir.Path, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the fakes and removes the configuration.
func (d *Demo) Close() error {
	err := d.server.Close()
	<-d.served
	return errors.Join(err, d.dir.Remove())
}

// ParseScript parses a script for the models. Some words in capitals in it stand for what the fakes know.
func ParseScript(text string) (*modelscript.Script, error) {
	japanese, english := places()
	known := strings.NewReplacer("SPREADSHEET", fakes.Spreadsheet, "PERSON", fakes.SlackUser, "PLACES_JA", japanese,
		"PLACES_EN", english, "OVERTIME_REPORT_JA", overtimeReport["ja"], "OVERTIME_REPORT_EN", overtimeReport["en"])
	return modelscript.Parse([]byte(known.Replace(text)))
}

// overtimeReport has regular expressions for messages that ask to write overtime into a sheet, or to tell somebody.
var overtimeReport = map[string]string{
	"ja": `残業.*(?:まとめ|書|シート|表に|入れ|追加|送|知らせ|伝え)|(?:シート|表に).*残業`,
	"en": `(?i)overtime.*\b(?:sheet|spreadsheet|write|put|add|append|send|tell|let)\b|` +
		`\b(?:sheet|spreadsheet|write|put|append|send)\b.*overtime`,
}

// places returns regular expressions for the places that the fake of JMA has forecasts for, in both languages.
func places() (japanese, english string) {
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
