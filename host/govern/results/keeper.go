// Package results keeps tool results that are too large for a model, so that their caller can read them in parts.
//
// Keeper.Shorten replaces a large result by its beginning and a link (hako-result:///ID). Keeper.Offer offers the tool
// read_result and the resource behind the link. A result is kept for the caller that it was for and nobody else, until
// its time is over or newer results need the room: in the database that replicas share, otherwise in memory. Fit
// shortens text without keeping it.
package results

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/pdk/abi"
)

// Options configures a Keeper. A nil *Options means all defaults.
type Options struct {
	// PerCaller and Total bound the kept results of one caller and of all callers, in bytes. Zero means 16 MiB and
	// 64 MiB.
	PerCaller, Total int64
	// Lifetime is the time for which a result is kept. Zero means an hour.
	Lifetime time.Duration
}

// Keeper keeps results. It is safe for concurrent use.
type Keeper struct {
	options Options
	storage storage
	logger  *slog.Logger
}

// storage holds kept documents within Options.PerCaller and Options.Total. Older documents give way: first the owner's
// own, then those of the owner who has most.
type storage interface {
	// add keeps a document that is within the limits.
	add(ctx context.Context, owner string, d *document) (id string, expires time.Time, err error)
	// find returns a document of the owner, or errGone.
	find(ctx context.Context, owner, id string) (*stored, error)
	// size returns the number of kept documents and their size in bytes.
	size(ctx context.Context) (count int, bytes int64, err error)
	// forget deletes documents whose time is over.
	forget(ctx context.Context) error
}

// document is a large part of a result.
type document struct{ tool, mimeType, text string }

// overhead is the memory of a kept document besides its content, in bytes.
const overhead = 512

func (d *document) size() int64 { return int64(len(d.text) + len(d.mimeType) + overhead) }

// detached returns a copy that can be kept: the texts of a document may be parts of a larger response.
func (d *document) detached() *document {
	return &document{strings.Clone(d.tool), strings.Clone(d.mimeType), strings.Clone(d.text)}
}

// New returns a Keeper that keeps results in memory.
func New(options *Options) *Keeper {
	k := newKeeper(options)
	k.storage = newMemory(&k.options)
	return k
}

// Open returns a Keeper that keeps results in s if other processes share it, so that every replica can read them, and
// otherwise in memory. The logger receives failures of the store.
func Open(ctx context.Context, options *Options, s *store.Store, logger *slog.Logger) (*Keeper, error) {
	if !s.Shared() {
		return New(options), nil
	}
	k := newKeeper(options)
	k.logger = logger
	var err error
	k.storage, err = newTable(ctx, s, &k.options)
	return k, err
}

func newKeeper(options *Options) *Keeper {
	k := &Keeper{logger: slog.New(slog.DiscardHandler)}
	if options != nil {
		k.options = *options
	}
	k.options.PerCaller = cmp.Or(k.options.PerCaller, 16<<20)
	k.options.Total = cmp.Or(k.options.Total, 64<<20)
	k.options.Lifetime = cmp.Or(k.options.Lifetime, time.Hour)
	return k
}

var (
	// errGone means that the owner has no document with this ID.
	errGone = errors.New("no such result")
	// errTooLarge means that a document is larger than the limits for all results together.
	errTooLarge = errors.New("it is larger than the limit for stored results (results.perCaller, results.total)")
	// errStore means that the store cannot keep it. The logger has the reason.
	errStore = errors.New("hako's store does not respond")
)

// keep keeps a document for its owner.
func (k *Keeper) keep(ctx context.Context, owner string, d *document) (id string, expires time.Time, err error) {
	if size := d.size(); size > k.options.PerCaller || size > k.options.Total {
		return "", time.Time{}, errTooLarge
	}
	if id, expires, err = k.storage.add(ctx, owner, d); err != nil {
		k.logger.ErrorContext(ctx, "a large result could not be stored", "tool", d.tool, "err", err)
		return "", time.Time{}, errStore
	}
	return id, expires, nil
}

// find returns a document of the owner.
func (k *Keeper) find(ctx context.Context, owner, id string) (*stored, error) {
	found, err := k.storage.find(ctx, owner, id)
	return found, k.explain(err, id)
}

// explain makes of errGone an error for the caller. It does not reveal whether another caller has a result with this
// ID.
func (k *Keeper) explain(err error, id string) error {
	if !errors.Is(err, errGone) {
		return err
	}
	return abi.Errorf(abi.CodeNotFound,
		"you have no stored result %q. hako stores results for %s, or until newer ones need the space: "+
			"call the tool again", shownID(id), k.options.Lifetime)
}

// shownID bounds an ID from a caller in a message.
func shownID(id string) string { return strings.ToValidUTF8(id[:min(len(id), 40)], "") }

// Size returns the number of kept results, at all replicas that share the store, and their size in bytes.
func (k *Keeper) Size(ctx context.Context) (count int, bytes int64, err error) {
	return k.storage.size(ctx)
}

// Forget deletes results whose time is over. One of the replicas calls it from time to time. Errors are the store's.
func (k *Keeper) Forget(ctx context.Context) error { return k.storage.forget(ctx) }
