// Choosing what a plugin gets: the form, what the server says of its fields, the look before the yes; and all of it on a real host.
import assert from 'node:assert/strict'
import { copyFile, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { answers, session } from './answers.mjs'
import { accessible, clean, narrow, root, shoot, startChromium, visit } from './chromium.mjs'
import { call, startHost, tokens } from './host.mjs'
import { startFake } from './fake.mjs'

let chromium
before(async () => { chromium = await startChromium() })
after(() => chromium.close())

describe('the form', () => {
  const wrong = { status: 400, error: { code: 'invalid', text: 'Some of the chosen permissions cannot be granted.', fields: {
    'mounts.workspace.dir': 'there is no folder /srv/nothing: create it, or name another', 'exec.connect': '"x": it is not HOST:PORT or HOST:PORT:private',
  } } }
  let refusing
  let host
  before(async () => {
    host = await startFake({ ...answers(session()), 'plugins/shell/review': () => refusing ? wrong : answers()['plugins/shell/review'], 'plugins/shell/approve': answers()['plugins/shell'] })
  })
  after(() => host.stop())

  test('what is wrong stands at its field, and what would be given is shown before the yes', async () => {
    refusing = true
    const page = await chromium.open(`${host.url}#/plugins/shell`, { size: 'phone' })
    await page.getByRole('button', { name: 'Choose what it gets' }).click()
    const dialog = page.getByRole('dialog')
    assert.equal(await page.evaluate(() => document.activeElement.labels[0].firstChild.textContent), 'Folder')
    await page.keyboard.type('/srv/nothing')
    await dialog.getByLabel('Programs').fill('git\n\n ls ')
    await dialog.getByLabel('Hosts').fill('github.com:443, x')
    await page.getByLabel('Folder').press('Enter')
    const folder = dialog.getByLabel('Folder')
    await dialog.getByText('there is no folder /srv/nothing').waitFor()
    await dialog.getByText('"x": it is not HOST:PORT').waitFor()
    await dialog.getByRole('alert').getByText('Some of the chosen permissions').waitFor()
    assert.equal(await folder.getAttribute('aria-invalid'), 'true')
    assert.ok(await folder.evaluate(control => control === document.activeElement), 'the first wrong field has the focus')
    assert.match(await folder.evaluate(control => control.getAttribute('aria-describedby').split(' ').map(id => document.getElementById(id).textContent).join(' ')), /there is no folder/)
    await accessible(page, 'the form with complaints')
    await narrow(page, 'the form')
    await shoot(page, 'console-choose-wrong')
    refusing = false
    await folder.fill('/srv/docs')
    assert.equal(await folder.getAttribute('aria-invalid'), null)
    await dialog.getByLabel('Hosts').fill('')
    await dialog.getByRole('button', { name: 'Show what it would get' }).click()
    await dialog.getByText('files /workspace: may read, change and delete what is in /srv/docs').waitFor()
    await accessible(page, 'the look before the yes')
    await shoot(page, 'console-choose-look')
    const choices = {
      mounts: { workspace: { dir: '/srv/docs', readOnly: false } }, http: { packages: { url: '', private: false, credential: '' } },
      exec: { programs: ['git', 'ls'], env: [], connect: [], unconfined: false }, note: '',
    }
    assert.deepEqual(host.posted.at(-1).body.choices, choices)
    await dialog.getByRole('button', { name: 'Back' }).click()
    assert.equal(await dialog.getByLabel('Programs').inputValue(), 'git\nls')
    await dialog.getByLabel('Allow reading only').check()
    await dialog.getByRole('button', { name: 'Show what it would get' }).click()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await dialog.waitFor({ state: 'detached' })
    const { name, body } = host.posted.at(-1)
    assert.deepEqual([name, body.version, body.choices.mounts.workspace], ['plugins/shell/approve', answers()['plugins/shell/review'].version, { dir: '/srv/docs', readOnly: true }])
    await clean(page)
  })

  test('what goes wrong only with the yes leads back to its field, and a click beside the form loses nothing', async () => {
    refusing = false
    const other = await startFake({ ...host.answers, 'plugins/shell/approve': wrong })
    const page = await chromium.open(`${other.url}#/plugins/shell`)
    await page.getByRole('button', { name: 'Choose what it gets' }).click()
    await page.getByLabel('Folder').fill('/srv/nothing')
    await page.mouse.click(5, 5)
    await page.getByRole('button', { name: 'Show what it would get' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    await page.getByText('there is no folder /srv/nothing').waitFor()
    assert.equal(await page.getByLabel('Folder').inputValue(), '/srv/nothing')
    assert.equal(await page.getByRole('dialog').count(), 1)
    await clean(page)
    await other.stop()
  })

  test('a viewer sees that there is something to choose, and cannot', async () => {
    const other = await startFake(answers(session('viewer')))
    const page = await chromium.open(`${other.url}#/plugins/shell`, { language: 'ja' })
    const choose = page.getByRole('button', { name: '許可する内容を指定' })
    await choose.click({ force: true })
    assert.equal(await page.locator('dialog').count(), 0)
    await page.getByText('hako plugin approve shell --mount').waitFor({ state: 'attached' })
    await clean(page)
    await other.stop()
  })
})

test('a real host refuses what it must not give, gives what was chosen, and can be told otherwise', async t => {
  const host = await startHost()
  t.after(() => host.stop())
  const [docs, other] = [path.join(host.cwd, 'docs'), path.join(host.cwd, 'other')]
  await Promise.all([mkdir(docs), mkdir(other), symlink('/etc', path.join(host.cwd, 'link'))])
  await writeFile(path.join(docs, 'note.txt'), 'a note of the docs')
  const page = await chromium.open(host.url)
  await page.locator('#token').fill(tokens.admin)
  await page.keyboard.press('Enter')
  await page.locator('.stat').first().waitFor()
  await copyFile(path.join(root, 'dist/plugins/files.wasm'), path.join(host.cwd, 'plugins/files.part'))
  await rename(path.join(host.cwd, 'plugins/files.part'), path.join(host.cwd, 'plugins/files.wasm'))
  await visit(page, 'plugins')
  await page.locator('.plugins .opener', { hasText: 'files' }).waitFor()
  await visit(page, 'plugins/files')
  await page.getByRole('button', { name: 'Choose what it gets' }).click()
  const dialog = page.getByRole('dialog')
  const folder = dialog.getByLabel('Folder')
  const look = dialog.getByRole('button', { name: 'Show what it would get' })
  for (const [dir, says] of [['docs', 'write the whole path'], [`${docs}/../../etc`, 'without ".."'], [path.join(host.cwd, 'link'), 'name the folder itself, /etc'], [path.join(docs, 'note.txt'), 'is not a folder']]) {
    await folder.fill(dir)
    await look.click()
    await dialog.locator('.trouble', { hasText: says }).waitFor()
  }
  await assert.rejects(readFile(path.join(host.cwd, 'hako.consents.yaml')))
  await folder.fill(docs)
  await dialog.getByLabel('Allow reading only').check()
  await look.click()
  await dialog.getByText(`files /workspace: may read what is in ${docs}`).waitFor()
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await page.locator('.head .badge', { hasText: 'active' }).waitFor()
  assert.match(JSON.stringify(await call(host.mcp, 'file_read', { path: 'note.txt' })), /a note of the docs/)
  await page.getByRole('button', { name: 'Change what it gets' }).click()
  assert.equal(await folder.inputValue(), docs)
  await folder.fill(other)
  await look.click()
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await page.locator('.plugins li', { hasText: `may read what is in ${other}` }).waitFor()
  assert.doesNotMatch(JSON.stringify(await call(host.mcp, 'file_read', { path: 'note.txt' })), /a note of the docs/)
  await visit(page, 'audit')
  await page.locator('.audit tbody tr', { hasText: 'plugin.approve' }).first().click()
  await dialog.getByText(`files /workspace: may read what is in ${other}`).waitFor()
  await shoot(page, 'host-audit-approve')
  await clean(page)
})
