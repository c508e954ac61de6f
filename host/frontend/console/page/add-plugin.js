// Adding a plugin: choose a file or an https address, review its permissions, then put it into the folder.
import { decide, showDialog } from './dialog.js'
import { h, put } from './dom.js'
import { labelled } from './field.js'
import { bytes, t } from './language.js'
import { code, facts, problem, signature } from './parts.js'
import { get, post, segment, upload } from './server.js'

/** addPlugin opens the dialog to choose a file or an address. If the folder is read-only, the dialog explains that. */
export async function addPlugin() {
  const trouble = h('div', { role: 'alert' })
  const place = h('p', { class: 'hint' })
  const form = h('form', { novalidate: true })
  const dialog = showDialog({ title: t('add.title'), body: [place, form, trouble] })
  const read = async (work, source) => {
    put(trouble)
    form.inert = true
    try {
      const plugin = await work()
      dialog.close()
      confirmAddition(plugin, source)
    } catch (error) {
      put(trouble, problem(error))
    }
    form.inert = false
  }
  const folder = await get('plugin-folder').catch(error => ({ problem: error.message }))
  if (folder.problem) return put(trouble, h('p', { class: 'notice' }, folder.problem), h('p', {}, t('add.readOnly')))
  put(place, t('add.about', { folder: folder.dir }), folder.machines && ` ${t('add.machines', { n: folder.machines })}`)
  put(form, fileField(folder, trouble, file => read(() => upload('plugin-folder/read/file', file), { file })), addressField(form, read))
  form.querySelector('button').focus()
}

/** fileField accepts a file that is chosen or dropped. The file name does not matter: the plugin's name is in its manifest. */
function fileField({ maxSize }, trouble, take) {
  const input = h('input', { type: 'file', accept: '.wasm,application/wasm', hidden: true })
  const accept = file => {
    if (!file) return
    if (file.size > maxSize) return put(trouble, h('p', { class: 'problem' }, t('add.tooLarge', { size: bytes(file.size), most: bytes(maxSize) })))
    take(file)
  }
  input.addEventListener('change', () => {
    accept(input.files[0])
    input.value = ''
  })
  const zone = h('div', { class: 'drop' }, h('p', {}, t('add.drop', { most: bytes(maxSize) })),
    h('button', { type: 'button', onclick: () => input.click() }, t('add.choose')), input)
  const over = on => event => {
    event.preventDefault()
    zone.classList.toggle('over', on)
  }
  zone.addEventListener('dragover', over(true))
  zone.addEventListener('dragleave', over(false))
  zone.addEventListener('drop', event => {
    over(false)(event)
    accept(event.dataTransfer.files[0])
  })
  return zone
}

function addressField(form, read) {
  const line = (type, placeholder) => h('input', { type, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder })
  const url = line('url', 'https://…/weather.wasm')
  const digest = line('text', 'sha256:…')
  form.addEventListener('submit', event => {
    event.preventDefault()
    const from = { url: url.value.trim(), digest: digest.value.trim() }
    read(() => post('plugin-folder/read/url', from), { url: from.url })
  })
  return h('fieldset', {}, h('legend', {}, t('add.address')),
    labelled({ schema: { description: t('add.urlAbout') }, name: 'URL' }, url).element,
    labelled({ schema: { description: t('add.digestAbout') }, name: t('plugins.digest') }, digest).element,
    h('button', { type: 'submit' }, t('add.fetch')))
}

/**
 * fetchAddition shows the progress of a download and its origin, then the plugin's permissions. work resolves to the plugin, or to nothing if there is no
 * newer version. source is passed to confirmAddition.
 */
export async function fetchAddition(title, from, work, source) {
  const place = from && h('p', {}, code(from))
  const state = h('div', { role: 'status' }, h('p', {}, t('find.reading')), place)
  const dialog = showDialog({ title, body: state })
  try {
    const plugin = await work()
    if (!dialog.isConnected) return
    if (!plugin) return put(state, h('p', {}, t('plugins.newest')))
    dialog.close()
    confirmAddition(plugin, source)
  } catch (error) {
    put(state, problem(error), place)
  }
}

/**
 * confirmAddition shows the permissions of a plugin from a file, a URL or an index, or of another version of an installed plugin: step is then "update" or
 * "rollback". The request to add it has its digest, so that nothing else is added.
 */
function confirmAddition(plugin, { file, url, listed, step }) {
  const { name, version, digest, exists } = plugin
  const lines = texts => h('ul', { class: 'lines' }, texts.map(text => h('li', {}, text)))
  decide({
    title: t(step ? `plugins.${step}Title` : 'add.confirm', { name, version }), label: exists ? t('add.replace') : t('add.add'), back: listed || step ? null : addPlugin,
    body: [
      exists && h('p', { class: 'notice' }, t('add.exists', { version: plugin.before || '?' })),
      listed && listed.name !== name && h('p', { class: 'notice' }, t('find.otherName', { name: listed.name })),
      listed?.resembles && h('p', { class: 'notice' }, t('find.resembles', { name: listed.resembles })),
      plugin.changes?.length > 0 && h('div', { class: 'news' }, h('h3', {}, t('plugins.changes')), lines(plugin.changes)),
      h('p', {}, plugin.description),
      h('h3', {}, t('plugins.asks')), plugin.asks.length > 0 ? lines(plugin.asks) : h('p', { class: 'hint' }, t('add.asksNothing')),
      facts([[t('plugins.digest'), code(digest)], [t('add.from'), plugin.from && code(plugin.from)],
        [t('plugins.signer'), signature(plugin.signer)], [t('plugins.license'), plugin.license], [t('add.size'), bytes(plugin.size)], ...(listed ? claims(listed) : [])]),
      h('h3', {}, t('plugins.tools')), lines(plugin.tools.map(tool => [code(tool.name), ' ', tool.title])),
      h('p', { class: 'hint' }, t('add.pending')),
    ],
    async act() {
      if (step) await post(`plugins/${segment(name)}/${step}`, { digest })
      else if (listed) await post('index/add', { index: listed.index, name: listed.name, digest, replace: exists })
      else if (file) await upload('plugin-folder/add/file', file, { digest, replace: exists })
      else await post('plugin-folder/add/url', { url, digest, replace: exists })
      location.hash = `#/plugins/${segment(name)}`
    },
  })
}

/** claims are unverified facts from the index. */
function claims({ index, publisher, homepage }) {
  const link = homepage?.startsWith('https://') && h('a', { href: homepage, target: '_blank', rel: 'noreferrer' }, homepage)
  return [[t('find.index'), code(index)], [t('find.publisher'), publisher], [t('find.homepage'), link]]
}
