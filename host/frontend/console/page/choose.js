// The form for the operator's choices about a plugin's permissions: a section for each permission, with its explanation.
import { h } from './dom.js'
import { labelled } from './field.js'
import { t } from './language.js'

/**
 * chooser makes the form for choose, the server's description, filled with chosen. read returns the choices; mark shows the server's errors at their fields
 * and focuses the first.
 */
export function chooser(choose, chosen = choose.chosen, submit) {
  const fields = new Map()
  const add = (key, around, control, more) => {
    const made = labelled(around, control, more)
    fields.set(key, made)
    return made.element
  }
  const mounts = choose.files.map(asked => mountPart(asked, chosen.mounts[asked.name] ?? {}, folderAbout(choose), add))
  const addresses = choose.http.map(asked => addressPart(asked, chosen.http[asked.name] ?? {}, add))
  const commands = choose.exec && commandPart(choose.exec, chosen.exec ?? {}, add)
  const note = line(chosen.note)
  const element = h('form', { novalidate: true, onsubmit: event => {
    event.preventDefault()
    submit()
  } }, [...mounts, ...addresses, commands].filter(Boolean).map(part => part.element),
  add('note', { schema: { description: t('choose.noteAbout') }, name: t('plugins.note') }, note),
  h('input', { type: 'submit', hidden: true }))
  return {
    element,
    read: () => ({
      mounts: Object.fromEntries(mounts.map(part => [part.name, part.read()])),
      http: Object.fromEntries(addresses.map(part => [part.name, part.read()])),
      ...commands && { exec: commands.read() }, note: note.value,
    }),
    mark(wrong) {
      const known = [...fields].filter(([key]) => Object.hasOwn(wrong, key))
      known.toReversed().forEach(([key, made]) => made.mark(wrong[key]))
    },
  }
}

function part(name, about, ...content) {
  return h('fieldset', {}, h('legend', {}, name), h('p', {}, about), content)
}

/** folderAbout explains where the folder must exist: on each machine if there are several. The server checks only its own. */
function folderAbout({ machines, machine }) {
  return [t('choose.folderAbout'), machines && t('choose.folderMachines', { n: machines, name: machine })].filter(Boolean).join(' ')
}

function mountPart({ name, about, write }, { dir, readOnly }, description, add) {
  const folder = line(dir, '/srv/docs')
  const only = check(readOnly)
  return {
    name, read: () => ({ dir: folder.value.trim(), readOnly: only.checked }),
    element: part(t('choose.files', { name }), about,
      add(`mounts.${name}.dir`, { schema: { description }, name: t('choose.folder'), required: true }, folder),
      write && add(`mounts.${name}.readOnly`, { schema: {}, name: t('choose.readOnly') }, only, { beside: true })),
  }
}

function addressPart({ name, about, url: asked, credential: key, configured }, chosen, add) {
  const url = line(chosen.url, asked)
  const inside = check(chosen.private)
  const credential = line(chosen.credential, key)
  return {
    name, read: () => ({ url: url.value.trim(), private: inside.checked, credential: credential.value.trim() }),
    element: part(t('choose.http', { name }), about,
      configured && h('p', { class: 'hint' }, t('choose.configured', { url: configured })),
      add(`http.${name}.url`, { schema: { description: t('choose.urlAbout', { url: asked }) }, name: t('choose.url') }, url),
      key && add(`http.${name}.credential`, { schema: { description: t('choose.credentialAbout', { name: key }) }, name: t('column.credential') }, credential),
      add(`http.${name}.private`, { schema: { description: t('choose.privateAbout') }, name: t('choose.private') }, inside, { beside: true })),
  }
}

function commandPart({ about, programs: asked }, chosen, add) {
  const programs = lines(chosen.programs)
  const env = lines(chosen.env)
  const connect = lines(chosen.connect)
  const unconfined = check(chosen.unconfined)
  const may = asked.length ? t('choose.programsAsked', { programs: asked.join(', ') }) : t('choose.programsAny')
  return {
    read: () => ({ programs: split(programs.value, /\n/), env: split(env.value, /[\s,]/), connect: split(connect.value, /[\s,]/), unconfined: unconfined.checked }),
    element: part(t('choose.exec'), about,
      add('exec.programs', { schema: { description: may }, name: t('choose.programs'), required: true }, programs),
      add('exec.env', { schema: { description: t('choose.envAbout') }, name: t('choose.env') }, env),
      add('exec.connect', { schema: { description: t('choose.connectAbout') }, name: t('choose.connect') }, connect),
      add('exec.unconfined', { schema: { description: t('choose.unconfinedAbout') }, name: t('choose.unconfined') }, unconfined, { beside: true })),
  }
}

function line(value, placeholder) {
  const control = h('input', { type: 'text', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder })
  control.value = value ?? ''
  return control
}

function lines(values) {
  const control = h('textarea', { rows: 3, class: 'code', autocapitalize: 'off', spellcheck: 'false' })
  control.value = words(values).join('\n')
  return control
}

function check(value) {
  const control = h('input', { type: 'checkbox' })
  control.checked = value === true
  return control
}

function words(values) {
  return Array.isArray(values) ? values : []
}

function split(text, at) {
  return text.split(at).map(word => word.trim()).filter(Boolean)
}
