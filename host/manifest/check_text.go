package manifest

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// longDescription is the length up to which a model reads a description with attention, in characters. Each character
// costs tokens in every request.
const longDescription = 1024

// languages are those that a shipped plugin is expected to speak.
var languages = []string{"en", "ja"}

// injection is a text that addresses the model in order to steer it, with what it is.
type injection struct {
	text lazyregexp.Regexp
	what string
}

// injections are compiled when a manifest is reviewed, so that no other start pays for it.
var injections = sync.OnceValue(func() []injection {
	return []injection{
		{lazyregexp.New(`(?i)\b(ignore|disregard|forget|override)\b.{0,30}` +
			`\b(previous|prior|above|earlier|other|all)\b.{0,30}\b(instruction|prompt|rule|message|tool)`),
			"tells the model to ignore other instructions"},
		{lazyregexp.New(`(以前|前|上記|これまで|他)の?.{0,10}(指示|命令|ルール|プロンプト).{0,10}(無視|忘れ)`),
			"tells the model to ignore other instructions"},
		{lazyregexp.New(`(?i)\b(system prompt|developer message|jailbreak|you are now|act as)\b`),
			"addresses the model's role"},
		{lazyregexp.New(`(?i)(do not|don't|never|without).{0,20}` +
			`\b(tell|telling|mention|inform|informing|show|reveal|ask|asking|notify)\w*\b.{0,20}\b(the )?user`),
			"tells the model to keep something from the user"},
		{lazyregexp.New(`(ユーザー|利用者).{0,6}(言わ|伝え|知らせ|見せ|確認せ).{0,4}(ない|ず)`),
			"tells the model to keep something from the user"},
		{lazyregexp.New(`(?i)(<!--|` +
			`<\s*/?\s*(system|important|instructions?|secret|hidden|assistant)\b[^>]*>|\[/?INST\])`),
			"contains markup that people do not see"},
		{lazyregexp.New(`(?i)\b(before|after|instead of) (using|calling) (any|another|other|every)\b.{0,20}\btools?\b`),
			"steers the use of other tools"},
		{lazyregexp.New(`[A-Za-z0-9+/]{120,}`), "contains a long run of encoded data"},
	}
})

// descriptions reviews the texts of the manifest.
func (r *review) descriptions() {
	m := r.manifest
	if m.License == "" {
		r.warn("license", `is missing: write the SPDX expression, such as "Apache-2.0"`)
	}
	r.text("description", m.Description)
	for i, t := range m.Tools {
		path := strictyaml.Index("tools", i)
		r.text(path+".description", t.Description)
		r.optionalText(path+".title", t.Title)
	}
	for i, x := range m.Resources {
		r.text(strictyaml.Index("resources", i)+".description", x.Description)
	}
	for i, x := range m.ResourceTemplates {
		r.text(strictyaml.Index("resourceTemplates", i)+".description", x.Description)
	}
	for i, p := range m.Prompts {
		path := strictyaml.Index("prompts", i)
		r.text(path+".description", p.Description)
		for j, a := range p.Arguments {
			r.text(strictyaml.Index(path+".arguments", j)+".description", a.Description)
		}
	}
	for i, x := range m.Retired {
		r.text(strictyaml.Index("retired", i)+".instead", x.Instead)
	}
	for i, p := range m.Permissions.HTTP {
		r.text(strictyaml.Index("permissions.http", i)+".reason", p.Reason)
	}
	for i, p := range m.Permissions.Files {
		r.text(strictyaml.Index("permissions.files", i)+".reason", p.Reason)
	}
	for _, name := range keys(m.Config) {
		r.text("config."+name+".description", m.Config[name].Description)
	}
	for _, language := range languages {
		r.translations(language, r.untranslated[language])
	}
}

// maxPaths limits the places that one finding names.
const maxPaths = 5

// translations warns of all texts that are missing in a language.
func (r *review) translations(language string, paths []string) {
	switch n := len(paths); {
	case n > maxPaths:
		r.warn("", "%d texts are missing in %q: %s and %d more", n, language,
			strings.Join(paths[:maxPaths], ", "), n-maxPaths)
	case n > 0:
		r.warn("", "no text in %q: %s", language, strings.Join(paths, ", "))
	}
}

// text reviews a text that should be there in every language.
func (r *review) text(path string, t Text) {
	if len(t) == 0 {
		r.warn(path, "is missing")
		return
	}
	r.optionalText(path, t)
}

func (r *review) optionalText(path string, t Text) {
	for _, language := range languages {
		if _, ok := t[language]; !ok && len(t) > 0 {
			r.untranslated[language] = append(r.untranslated[language], path)
		}
	}
	for _, language := range keys(t) {
		r.suspicious(strictyaml.Key(path, language), t[language])
		if n := utf8.RuneCountInString(t[language]); n > longDescription {
			r.warn(strictyaml.Key(path, language), "has %d characters: models read about %d reliably, so shorten it", n,
				longDescription)
		}
	}
}

// suspicious points out text that is meant for a model and not for the person who reviews it.
func (r *review) suspicious(path, text string) {
	for _, i := range injections() {
		if i.text().MatchString(text) {
			r.warn(path, "%s, as a prompt injection does: reword it", i.what)
		}
	}
}
