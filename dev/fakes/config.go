package fakes

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed hako.yaml.tmpl
var configText string

// generated is the first line of a hako.yaml that WriteConfig may write over.
const generated = "# Written by hako-dev fakes.\n"

// ErrNotOurs means that there is a hako.yaml already that WriteConfig has not written.
var ErrNotOurs = errors.New("it was not written by hako-dev fakes")

// WriteConfig writes hako.yaml and the files with secrets that it names into dir, which is made if it is missing, and
// returns the text of hako.yaml. url is the address of the fakes. It returns ErrNotOurs rather than replace
// somebody's configuration.
func (f *Fakes) WriteConfig(dir, url string) (string, error) {
	path := filepath.Join(dir, "hako.yaml")
	old, err := os.ReadFile(path)
	if err == nil && !bytes.HasPrefix(old, []byte(generated)) {
		return "", fmt.Errorf("%s is there already: %w. Choose another directory", path, ErrNotOurs)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	key, err := f.Google.AddServiceAccount(ServiceAccount, url+"/google/token")
	if err != nil {
		return "", err
	}
	secrets := map[string][]byte{
		"google-key.json": key, "slack.token": []byte(slackToken), "github.token": []byte(githubToken),
		"freee.token": []byte(f.Freee.Issue(0).Access), "freee-client.secret": []byte("freee-secret"),
		"kot.token": []byte(kotToken), "smarthr.token": []byte(smarthrToken),
		"model.key": []byte(modelKey),
	}
	for name, secret := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), secret, 0o600); err != nil {
			return "", err
		}
	}
	text := generated + strings.NewReplacer("{{.URL}}", url, "{{.Repository}}", Repository).Replace(configText)
	return text, os.WriteFile(path, []byte(text), 0o644)
}
