from django.db import migrations, models
from django.db.models import Func, TextField, Value
from django.db.models.functions import Cast, Collate

from better_compute import ComputeMigration


class Migration(ComputeMigration):
    """What the operator's pages need so that none of them sorts or scans a big table."""

    dependencies = [("compute_iam", "0003_token_makers")]

    operations = [
        migrations.AddIndex(
            model_name="grantrow",
            index=models.Index(
                condition=models.Q(("break_glass", True)), fields=["version"], name="compute_iam_grants_glass"
            ),
        ),
        migrations.AddIndex(
            model_name="scopedtoken",
            index=models.Index(fields=["created_at"], name="compute_iam_tokens_created"),
        ),
        migrations.AddIndex(
            model_name="tenantnode",
            index=models.Index(
                Collate(Func(Cast("path", TextField()), Value(-1), function="LEFT", output_field=TextField()), "C"),
                name="compute_iam_tenants_place",
            ),
        ),
    ]
