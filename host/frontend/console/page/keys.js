// Keyboard shortcuts of the page: the command menu, the search of a view, and two keys for each view. They do not work in fields and dialogs.
import { learn } from './language.js'
import { views } from './nav.js'
import { setting } from './settings.js'

/** letters maps the key after g to a view. */
export const letters = {
  o: 'overview', a: 'approvals', c: 'calls', e: 'errors', l: 'audit', p: 'plugins', f: 'find', t: 'tools', x: 'toolsets', r: 'policy', s: 'sessions', k: 'tokens', n: 'connections', i: 'configuration',
}
const patience = 1500

/** openMenu opens the menu. */
export function openMenu() {
  opened('menu')
}

/** opened opens a dialog of commands.js, which is loaded on first use. */
async function opened(name) {
  const [commands] = await Promise.all([import('./commands.js'), learn()]).catch(() => []) // the page says that hako is away
  commands?.[name]()
}

/** listenForKeys handles keys until signal aborts. With single-letter keys turned off, for example for speech input, the menu key still works. */
export function listenForKeys(signal) {
  let after // the timer of the g before
  addEventListener('keydown', event => {
    const { key, ctrlKey, metaKey, altKey, target } = event
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return
    const first = after
    clearTimeout(after)
    after = undefined
    const act = work => {
      event.preventDefault()
      work()
    }
    if ((ctrlKey || metaKey) && key.toLowerCase() === 'k') return act(openMenu)
    if (ctrlKey || metaKey || altKey || setting('keys') || target.closest?.('input, textarea, select')) return
    const view = first && letters[key]
    if (views.includes(view)) return act(() => { location.hash = `#/${view}` })
    if (key === 'g') after = setTimeout(() => { after = undefined }, patience)
    else if (key === '?') act(() => opened('help'))
    else if (key === '/') act(() => document.querySelector('main input[type=search]')?.focus())
  }, { signal })
  signal.addEventListener('abort', () => clearTimeout(after))
}
