"""Lists of any size: one page and one row more, in an order that an index gives, and never a COUNT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst

if TYPE_CHECKING:
    from better_compute.admin.read_only import ReadOnlyAdmin

#: Pages one can leaf through; deeper rows are found with a filter, since OFFSET reads all it skips.
MAX_PAGES: Final = 100


class WindowChangeList(ChangeList):
    """A change list that knows only whether there is a next page."""

    model_admin: ReadOnlyAdmin

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    def get_results(self, request: HttpRequest) -> None:
        """Read the window of the page that was asked for."""
        self.page_num = min(max(self.page_num, 1), MAX_PAGES)
        start = (self.page_num - 1) * self.list_per_page
        window = list(self.queryset[start : start + self.list_per_page + 1])
        self.result_list = window[: self.list_per_page]
        self.model_admin.prepare(self.result_list)
        self.result_count = len(self.result_list)
        self.has_next_page = len(window) > self.list_per_page
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = False
        self.multi_page = self.has_next_page or self.page_num > 1

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """The page's own order and nothing after it: a tie-breaker of Django's would leave the index."""
        return list(self.model_admin.get_ordering(request))

    def url_for_result(self, result: Any) -> str:
        """Address of a row's page."""
        return reverse(
            f"admin:{self.opts.app_label}_{self.opts.model_name}_change",
            args=(quote(self.model_admin.object_id(result)),),
            current_app=self.model_admin.admin_site.name,
        )

    @property
    def first_row(self) -> int:
        """Number of the first row shown, from 1."""
        return (self.page_num - 1) * self.list_per_page + 1

    @property
    def last_row(self) -> int:
        """Number of the last row shown."""
        return self.first_row + len(self.result_list) - 1

    @property
    def previous_url(self) -> str:
        """Query string of the page before, or an empty string."""
        return self.get_query_string({PAGE_VAR: self.page_num - 1}) if self.page_num > 1 else ""

    @property
    def next_url(self) -> str:
        """Query string of the next page, or an empty string."""
        more = self.has_next_page and self.page_num < MAX_PAGES
        return self.get_query_string({PAGE_VAR: self.page_num + 1}) if more else ""

    @property
    def is_cut(self) -> bool:
        """Whether there are rows that only a filter reaches."""
        return self.has_next_page and self.page_num >= MAX_PAGES
