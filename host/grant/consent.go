package grant

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hako-run/hako/host/internal/glob"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/strictyaml"
)

// Consent is the operator's recorded yes to one plugin: to one file, by its digest, and to what it asked for then.
type Consent struct {
	// Name is the plugin's name; a File has one Consent for each.
	Name    string
	Version string
	// Digest is that of the plugin's file, as manifest.Module has it.
	Digest string
	// Asked is what the plugin asked for. Reasons are not recorded.
	Asked manifest.Permissions

	// ApprovedAt is recorded to the second. ApprovedBy says who or what said yes.
	ApprovedAt time.Time
	ApprovedBy string
	// RevokedAt is when the operator took the yes back. Zero: it is in force.
	RevokedAt time.Time
	RevokedBy string

	// Mounts are the folders for the mounts that the plugin asks for, by the mount's name. A relative Path is relative to the
	// directory of the consent file.
	Mounts map[string]Mount
	// HTTP are the operator's settings for HTTP permissions, by the permission's name. One that is absent is granted as asked.
	HTTP map[string]HTTPMapping
	// Exec is what the operator settles about commands; where the plugin asks for them, programs are named in it.
	Exec Exec
	// Note is the operator's own.
	Note string

	// dir is the directory of the consent file.
	dir string
}

// HTTPMapping is what the operator settles about one HTTP permission.
type HTTPMapping struct {
	// URL is granted instead of the one that the plugin asks for, if not empty: a narrower one, or another server.
	URL string `json:"url"`
	// Private allows addresses that are not public, as in HTTPRule.
	Private bool `json:"private"`
	// Credential is applied instead of the one that the plugin asks for, if not empty. A plugin that asks for none gets none.
	Credential string `json:"credential"`
}

var (
	pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	digest     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// check checks that the consent can be recorded and, unless it is revoked, put in force.
func (c *Consent) check() error {
	var errs []error
	if !pluginName.MatchString(c.Name) {
		errs = append(errs, fmt.Errorf("consent for plugin %q: that is no plugin name", c.Name))
	}
	if !digest.MatchString(c.Digest) {
		errs = append(errs, fmt.Errorf("consent for plugin %s: the digest must be sha256: and 64 hexadecimal digits", c.Name))
	}
	return errors.Join(append(errs, c.checkMounts(), c.checkHTTP(), c.checkExec())...)
}

func (c *Consent) checkMounts() error {
	var errs []error
	var asked []string
	for _, p := range c.Asked.Files {
		asked = append(asked, p.Mount)
		if _, ok := c.Mounts[p.Mount]; !ok && c.RevokedAt.IsZero() {
			errs = append(errs, notMapped(c.Name, p.Mount))
		}
	}
	for _, name := range sortedKeys(c.Mounts) {
		m := c.Mounts[name]
		switch {
		case !slices.Contains(asked, name):
			errs = append(errs, fmt.Errorf("plugin %s: %s", c.Name, strictyaml.Unknown("mount", name, asked)))
		case m.Path == "" || strings.HasPrefix(m.Path, "~") || strings.ContainsRune(m.Path, 0):
			errs = append(errs, wrongMount(c.Name, name, both(`the folder must be written out, without "~"`, `フォルダーは「~」を使わずにすべて書いてください`)))
		case m.Quota < 0:
			errs = append(errs, fmt.Errorf("plugin %s: mount %s: the quota must not be below zero", c.Name, name))
		}
		for _, pattern := range m.Deny {
			if !glob.Valid(pattern) {
				errs = append(errs, fmt.Errorf("plugin %s: mount %s: deny: %q is not a valid glob, or has more than four groups in braces", c.Name, name, pattern))
			}
		}
	}
	return errors.Join(errs...)
}

func notMapped(plugin, mount string) error {
	return wrong("mounts."+mount+".dir", both("choose a folder", "フォルダーを指定してください"),
		fmt.Sprintf("plugin %[1]s: mount %[2]q is not mapped to a folder: hako plugin approve %[1]s --mount %[2]s=DIR", plugin, mount))
}

func (c *Consent) checkHTTP() error {
	var errs []error
	var asked []string
	credentials := map[string]string{}
	for _, p := range c.Asked.HTTP {
		asked = append(asked, p.Name)
		credentials[p.Name] = p.Credential
	}
	for _, name := range sortedKeys(c.HTTP) {
		if !slices.Contains(asked, name) {
			errs = append(errs, fmt.Errorf("plugin %s: %s", c.Name, strictyaml.Unknown("HTTP permission", name, asked)))
		}
		if text := checkCredential(c.HTTP[name].Credential, credentials[name]); text != nil {
			errs = append(errs, wrongHTTP(c.Name, name, "credential", text))
		}
		if to := c.HTTP[name].URL; to != "" {
			if _, err := manifest.ParseBaseURL(to); err != nil {
				errs = append(errs, wrongHTTP(c.Name, name, "url", both("url %q %v", "%q は「https://api.example.com/v1/」のような URL ではありません (%v)", to, err)))
			}
		}
	}
	return errors.Join(errs...)
}

// checkCredential says what is wrong with the name of a credential that is to be applied instead of the one asked for; nil if nothing is.
func checkCredential(mapped, asked string) manifest.Text {
	switch {
	case mapped == "":
		return nil
	case asked == "":
		return both("the plugin asks for no credential there: remove %q", "このプラグインは認証情報を求めていません。%q を削除してください", mapped)
	case !pluginName.MatchString(mapped):
		return both(`%q is no name of a credential: 1 to 40 of a-z, 0-9 and "-", starting with a letter`,
			"%q は認証情報の名前ではありません。英小文字で始まる 1～40 文字の英小文字、数字、「-」を指定してください", mapped)
	}
	return nil
}
