// Package page is a small web client of the fake Slack. What the bot writes is shown about as Slack shows it,
// and whoever sits there can be one person after the other: write, press buttons, fill in modals, stop answers, send
// files and type commands. The bot does not know the difference.
package page

import (
	"crypto/subtle"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/internal/httpserver"
)

//go:embed static
var static embed.FS

// Options configures the page.
type Options struct {
	// Slack is the fake that the page shows.
	Slack *slack.Server
	// Bot is the bot's user ID, BotName what people mention it by.
	Bot, BotName string
	// Token opens the page: whoever comes first with it gets a cookie.
	Token string
	// FileURL is the fake's own URL, where the bot finds files that people send.
	FileURL string
}

// cookie holds the token.
const cookie = "hako_dev_slack"

// policy of the content: nothing from elsewhere, no inline code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// page is the handler's state.
type page struct{ Options }

// New returns the page's handler, for the root of a server. It answers requests to this machine's own names alone,
// which web pages elsewhere cannot make by a name of theirs, and after the first only with the cookie.
func New(o Options) http.Handler {
	p := &page{o}
	files, _ := fs.Sub(static, "static") // it is a valid path
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/stream", p.stream)
	mux.HandleFunc("GET /api/files/{id}", p.download)
	mux.HandleFunc("POST /api/files", p.upload)
	mux.HandleFunc("POST /api/messages", p.take(p.say))
	mux.HandleFunc("POST /api/commands", p.take(p.command))
	mux.HandleFunc("POST /api/presses", p.take(p.press))
	mux.HandleFunc("POST /api/stops", p.take(p.stop))
	mux.HandleFunc("POST /api/submissions", p.submit)
	mux.HandleFunc("POST /api/closings", p.leave)
	return withPolicy(httpserver.LocalOnly(p.login(mux), "Open the page at 127.0.0.1."))
}

// withPolicy says what browsers may do with the answers.
func withPolicy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// login turns the token of the first request into a cookie, and lets nobody in without it.
func (p *page) login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.URL.Query().Has("token") && p.knows(r.URL.Query().Get("token")) {
			http.SetCookie(w, &http.Cookie{Name: cookie, Value: p.Token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(cookie); err != nil || !p.knows(c.Value) {
			http.Error(w, "open the address that hako-dev slack has printed, with its token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *page) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(p.Token)) == 1
}

// URL is the address to open, for a page that is served at base ("http://127.0.0.1:8432").
func (o Options) URL(base string) string { return base + "/?token=" + url.QueryEscape(o.Token) }

// person returns the sender of the request: the browser may be any member of the workspace, and is the first one if it
// does not say.
func (p *page) person(r *http.Request) (string, error) {
	id := r.URL.Query().Get("as")
	for _, u := range p.Slack.Users() {
		if (u.ID == id || id == "") && !u.Deleted && !u.Bot {
			return u.ID, nil
		}
	}
	return "", errors.New("nobody of that name is in the workspace")
}
