package authserver

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/address"
)

var (
	//go:embed page.css
	pageStyle string

	// pagePolicy is the Content Security Policy of the pages. It has no form-action: browsers hold that against the
	// redirects after a form too, which lead to the provider and then to the client.
	pagePolicy = func() string {
		sum := sha256.Sum256([]byte(pageStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; frame-ancestors 'none'"
	}()
)

// page is a page that people read.
type page struct {
	Language string
	// Title, Lead and Warning are in the reader's language; Warning may be empty.
	Title, Lead, Warning string
	// Facts are shown as a list.
	Facts []fact
	// Action is the URL to which the form with Request and Proof is sent. Empty means a page without a form.
	Action, Request, Proof, Yes, No string
}

type fact struct{ Name, Value string }

var languages = language.NewMatcher([]language.Tag{language.English, language.Japanese})

// readerLanguage returns "en" or "ja".
func readerLanguage(r *http.Request) string {
	tags, _, _ := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	if _, index, _ := languages.Match(tags...); index == 1 {
		return "ja"
	}
	return "en"
}

func show(w http.ResponseWriter, status int, p *page) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.Language)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Frame-Options", "DENY")
	w.WriteHeader(status)
	_, _ = w.Write(p.html()) // fails if the reader has gone
}

// html returns the page's document. It escapes every text. Package html/template would keep all methods of the
// program's types in the binary.
func (p *page) html() []byte {
	var b bytes.Buffer
	write := func(format string, texts ...string) {
		escaped := make([]any, len(texts))
		for i, text := range texts {
			escaped[i] = html.EscapeString(text)
		}
		fmt.Fprintf(&b, format, escaped...)
	}
	write(`<!doctype html><html lang="%s"><head><meta charset="utf-8">`, p.Language)
	write(`<meta name="viewport" content="width=device-width, initial-scale=1"><title>hako · %s</title><style>`,
		p.Title)
	b.WriteString(pageStyle) // the policy has its hash
	write(`</style></head><body><main><p class="brand">hako</p><h1>%s</h1><p>%s</p>`, p.Title, p.Lead)
	if len(p.Facts) > 0 {
		write(`<dl>`)
		for _, f := range p.Facts {
			write(`<dt>%s</dt><dd>%s</dd>`, f.Name, f.Value)
		}
		write(`</dl>`)
	}
	if p.Warning != "" {
		write(`<p class="warning">%s</p>`, p.Warning)
	}
	if p.Action != "" {
		write(`<form method="post" action="%s"><input type="hidden" name="request" value="%s">`, p.Action, p.Request)
		write(`<input type="hidden" name="proof" value="%s"><button name="answer" value="yes">%s</button>`, p.Proof,
			p.Yes)
		write(`<button name="answer" value="no" class="quiet">%s</button></form>`, p.No)
	}
	write(`</main></body></html>`)
	return b.Bytes()
}

var texts = map[string]manifest.Text{
	"title": {"en": "Let this program use hako?", "ja": "このプログラムに hako の利用を許可しますか？"},
	"lead": {
		"en": "It will call tools in your name. Next, you log in with your company's account.",
		"ja": "許可すると、あなたの名前でツールを呼び出します。次に会社のアカウントでログインします。",
	},
	"warning": {
		"en": "The program chose its name itself. Continue only if you have just started this login in it.",
		"ja": "名前はプログラム自身が名乗ったものです。このプログラムで今ログインを始めた場合だけ続けてください。",
	},
	"program":   {"en": "Program", "ja": "プログラム"},
	"publisher": {"en": "Published at", "ja": "公開元"},
	"returns":   {"en": "Access goes to", "ja": "アクセス権の渡し先"},
	"provider":  {"en": "You log in at", "ja": "ログイン先"},
	"scopes":    {"en": "Scopes", "ja": "スコープ"},
	"unnamed":   {"en": "A program without a name", "ja": "名前のないプログラム"},
	"local":     {"en": "a program on this computer", "ja": "このコンピューターのプログラム"},
	"yes":       {"en": "Continue to login", "ja": "ログインへ進む"},
	"no":        {"en": "Cancel", "ja": "キャンセル"},
	"failed":    {"en": "The login cannot continue", "ja": "ログインを続けられません"},
	"again":     {"en": "Start again in the program where you began.", "ja": "ログインを始めたプログラムで最初からやり直してください。"},
	"reason":    {"en": "Reason", "ja": "理由"},
	"wait": {"en": "Too many logins from your network. Wait a moment, then start again.",
		"ja": "お使いのネットワークからのログインが多すぎます。少し待ってからやり直してください。"},
	"broken": {"en": "hako has a problem. Try again in a moment.", "ja": "hako に問題が起きています。少し待ってからやり直してください。"},
}

// showConsent shows who wants to act for the person, and where the code would go.
func (s *Server) showConsent(w http.ResponseWriter, r *http.Request, a *authorization, request, proof string) {
	in := readerLanguage(r)
	name := a.Name
	if name == "" {
		name = texts["unnamed"].In(in)
	}
	facts := []fact{{texts["program"].In(in), name}}
	if u, err := url.Parse(a.Client); err == nil && u.Scheme == "https" {
		facts = append(facts, fact{texts["publisher"].In(in), u.Hostname()})
	}
	if len(a.Scopes) > 0 {
		facts = append(facts, fact{texts["scopes"].In(in), strings.Join(a.Scopes, ", ")})
	}
	facts = append(facts, fact{texts["returns"].In(in), destination(a.Redirect, in)})
	if u, err := url.Parse(s.options.Provider.Issuer); err == nil {
		facts = append(facts, fact{texts["provider"].In(in), u.Hostname()})
	}
	show(w, http.StatusOK, &page{
		Language: in, Title: texts["title"].In(in), Lead: texts["lead"].In(in), Warning: texts["warning"].In(in),
		Facts: facts, Action: consentPath, Request: request, Proof: proof, Yes: texts["yes"].In(in),
		No: texts["no"].In(in),
	})
}

// destination describes the redirect URI: its host, or the scheme of a native program.
func destination(redirect, in string) string {
	u, err := url.Parse(redirect)
	switch {
	case err != nil:
		return redirect
	case address.IsLoopback(u.Hostname()):
		return u.Hostname() + " (" + texts["local"].In(in) + ")"
	case u.Scheme != "https":
		return u.Scheme + ": (" + texts["local"].In(in) + ")"
	}
	return u.Hostname()
}

// refuse shows why a request is refused. It never redirects.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errBusy) {
		s.tooMany(w, r, documentFailure)
		return
	}
	if errors.Is(err, errDocument) {
		s.options.Logger.Warn("a client ID metadata document cannot be used", "err", err)
	}
	for known, japanese := range reasons {
		if errors.Is(err, known) { // other texts of the document's server are not shown
			s.showFailure(w, r, http.StatusBadRequest, "again", manifest.Text{"en": known.Error(), "ja": japanese})
			return
		}
	}
	s.fail(w, r, err)
}

// reasons are the errors of requests, in Japanese.
var reasons = map[error]string{
	errUnknownClient: "クライアントが登録されていません (client_id)",
	errUnregistered:  "クライアントはこのリダイレクト URI を登録していません (redirect_uri)",
	errResponseType:  "レスポンスタイプは code でなければなりません (response_type)",
	errChallenge:     "S256 の PKCE チャレンジが必要です (code_challenge)",
	errResource:      "hako 以外のリソースへのリクエストです (resource)",
	errParameter:     "パラメーターが重複しているか、長すぎます",
	errExpired:       "このブラウザーで始めたログインではないか、時間がかかりすぎました",
	errDocument:      "クライアント ID のメタデータ文書を使えません",
}

// fail shows that hako has a problem, and logs it.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.options.Logger.Error("a login of an MCP client failed", "err", err)
	s.showFailure(w, r, http.StatusServiceUnavailable, "broken", nil)
}

func (s *Server) tooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	retryAfter(w, wait)
	s.showFailure(w, r, http.StatusTooManyRequests, "wait", nil)
}

func (s *Server) showFailure(w http.ResponseWriter, r *http.Request, status int, lead string,
	reason manifest.Text) {
	in := readerLanguage(r)
	p := &page{Language: in, Title: texts["failed"].In(in), Lead: texts[lead].In(in)}
	if text := reason.In(in); text != "" {
		first, size := utf8.DecodeRuneInString(text)
		p.Facts = []fact{{texts["reason"].In(in), string(unicode.ToUpper(first)) + text[size:]}}
	}
	show(w, status, p)
}
