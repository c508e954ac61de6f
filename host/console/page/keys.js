// Keys for the whole page: a menu of all views, plugins and tools, the search of a view, and two keys for a view. Keys in fields and dialogs are theirs.
import { learn } from './language.js'
import { views } from './nav.js'
import { setting } from './settings.js'

/** letters leads from the key after g to a view. */
export const letters = {
  o: 'overview', a: 'approvals', c: 'calls', e: 'errors', l: 'audit', p: 'plugins', f: 'find', t: 'tools', x: 'toolsets', r: 'policy', s: 'sessions', k: 'tokens', n: 'connections', i: 'configuration',
}
const patience = 1500

/** openMenu opens the menu. */
export function openMenu() {
  opened('menu')
}

/** opened opens a dialog of commands.js, which is loaded when it is wanted first. */
async function opened(name) {
  const [commands] = await Promise.all([import('./commands.js'), learn()]).catch(() => []) // the page says that hako is away
  commands?.[name]()
}

/** listenForKeys follows the keys until signal aborts. Whoever has turned the single keys off, as some speak to their computer, still has the menu. */
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
