"""A tab in TensorBoard: ``tensorboard --logdir`` finds this through the entry point ``tensorboard_plugins``.

TensorBoard imports this module unguarded whenever it starts, so it needs the standard library and TensorBoard alone;
everything else loads when TensorBoard asks for the plugin, where a failure costs the tab only.
"""

from __future__ import annotations

import logging
from typing import Any

from tensorboard.plugins import base_plugin

_log = logging.getLogger(__name__)


class Loader(base_plugin.TBLoader):
    """What TensorBoard starts with."""

    def load(self, context: base_plugin.TBContext) -> base_plugin.TBPlugin | None:
        """The plugin, or None where it cannot work here."""
        try:
            from stepscope.integrations.tensorboard_tab import Tab

            return _plugin(context, Tab.of(context.logdir, getattr(context.flags, "logdir_spec", None)))
        except Exception as error:  # noqa: BLE001  TensorBoard must start, whatever is wrong with us.
            _log.warning("stepscope: no tab (%s: %s)", type(error).__name__, error)
            return None


def _plugin(context: base_plugin.TBContext, tab: Any) -> base_plugin.TBPlugin:
    class Plugin(base_plugin.TBPlugin):
        """The tab as TensorBoard knows plugins."""

        plugin_name = "stepscope"

        def get_plugin_apps(self) -> dict[str, Any]:
            """Routes below /data/plugin/stepscope."""
            return dict(tab.routes)

        def is_active(self) -> bool:
            """Whether the tab has something to show."""
            return bool(tab.is_active())

        def frontend_metadata(self) -> base_plugin.FrontendMetadata:
            """How the tab is shown."""
            return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="stepscope", disable_reload=True)

    return Plugin(context)
