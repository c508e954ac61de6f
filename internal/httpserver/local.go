package httpserver

import (
	"net/http"
	"strings"

	"github.com/hako-run/hako/internal/address"
)

// LocalOnly keeps web pages from using a handler that is meant for programs and people on this machine, through the
// browser of somebody who works there. It answers 403 to
//
//   - requests under a name that other sites can point here (DNS rebinding), whatever they ask for;
//   - changes that a page of another origin sends, as Sec-Fetch-Site or Origin says (net/http's
//     CrossOriginProtection);
//   - WebSocket handshakes of such pages. They are GET requests, and browsers let every page read what follows.
//
// The first answer ends with remedy, a sentence that says how to ask instead. Programs send none of these headers but
// Host. Another port of this machine is another origin. trusted are origins ("https://api.slack.com") that programs send
// all the same, as clients of a vendor do; pages of them come in.
func LocalOnly(next http.Handler, remedy string, trusted ...string) http.Handler {
	protection := http.NewCrossOriginProtection()
	for _, origin := range trusted {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic(err) // it is part of the program
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checked := r
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			checked = r.Clone(r.Context())
			checked.Method = http.MethodPost // GET would pass without a check
		}
		switch {
		case !address.IsLocalName(address.Hostname(r.Host)):
			http.Error(w, "This address is for programs on this machine, under the names localhost and 127.0.0.1. "+
				remedy, http.StatusForbidden)
		case protection.Check(checked) != nil:
			http.Error(w, "Web pages of other origins may not use this address.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
