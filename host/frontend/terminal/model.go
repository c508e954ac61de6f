package terminal

import (
	"context"
	"sync"

	"github.com/hako-run/hako/host/frontend/llm"
)

// Model is the chain of models of which the person has chosen the first.
type Model struct {
	mu    sync.Mutex
	chain *llm.Chain
}

// NewModel starts with the order of a chain.
func NewModel(chain *llm.Chain) *Model { return &Model{chain: chain} }

func (m *Model) now() *llm.Chain {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chain
}

func (m *Model) choose(name string) error {
	chosen, err := m.now().First(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chain = chosen
	return nil
}

// Name implements llm.Provider.
func (m *Model) Name() string { return m.now().Name() }

// Window is the size of the context window in tokens.
func (m *Model) Window() int { return m.now().Window() }

// Complete implements llm.Provider.
func (m *Model) Complete(ctx context.Context, r *llm.Request, stream func(llm.Delta)) (*llm.Response, error) {
	return m.now().Complete(ctx, r, stream)
}
